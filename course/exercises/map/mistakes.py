"""What goes wrong in exercise 9; of two that behave alike the first one is named."""

from tinygraph_course.content.exercise import Mistake

_RELU = "    if (i < n)\n        y[i] = x[i] < 0.0f ? 0.0f : x[i];"
_STRIDE = "i += gridDim.x * blockDim.x)"
_BEGIN = "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; "
_AXPY = "y[i] = a * x[i] + y[i];"
_SCALE = "        m[i] *= s[i % cols];"
_IN_MATRIX = "    if (i < rows * cols)\n"
_BACK = "        gx[i] = y[i] > 0.0f ? gy[i] : 0.0f;"
_INDEX = "    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"

MISTAKES = [
    Mistake(
        1,
        "no-guard",
        "The last block has threads beyond the last element, and they read and write there.\n"
        "Only i < n has an element; i <= n lets one of them pass.",
        [(_RELU, "    y[i] = x[i] < 0.0f ? 0.0f : x[i];")],
    ),
    Mistake(
        1,
        "every-block-the-same",
        "Every block works on the first elements: threadIdx.x counts within its block alone.",
        [(f"{_INDEX}{_RELU}", f"    const int i = threadIdx.x;\n{_RELU}")],
    ),
    Mistake(
        1,
        "whole-blocks-only",
        "The last elements are not written: your guard lets whole blocks pass alone.",
        [(_RELU, _RELU.replace("i < n", "i < n / blockDim.x * blockDim.x"))],
    ),
    Mistake(
        1,
        "nan-is-lost",
        "A NaN becomes a number: fmaxf, and a test x > 0, take the other side of it. A network\n"
        "that has gone wrong shall not look right.",
        [(_RELU, _RELU.replace("x[i] < 0.0f ? 0.0f : x[i]", "fmaxf(x[i], 0.0f)"))],
    ),
    Mistake(
        1,
        "negative-stays",
        "Negative numbers keep their value: the two sides of your choice are exchanged.",
        [(_RELU, _RELU.replace("x[i] < 0.0f ? 0.0f : x[i]", "x[i] < 0.0f ? x[i] : 0.0f"))],
    ),
    Mistake(
        2,
        "stride-of-a-block",
        "You go on by the threads of one block. With several blocks they take the same elements,\n"
        "and each adds to them: go on by the threads of the whole grid.",
        [(_STRIDE, "i += blockDim.x)")],
    ),
    Mistake(
        2,
        "no-loop",
        "Each thread takes one element and stops: with a small grid the rest is left as it was.",
        [(_STRIDE, "i += n)")],
    ),
    Mistake(
        2,
        "stride-of-the-grid-s-blocks",
        "You go on by the number of blocks. The grid has gridDim.x * blockDim.x threads.",
        [(_STRIDE, "i += gridDim.x)")],
    ),
    Mistake(
        2,
        "begins-in-the-block",
        "All blocks begin at the same elements: the thread's number in the grid counts, not that\n"
        "in its block.",
        [(_BEGIN, "for (int i = threadIdx.x; i < n; ")],
        [[(_BEGIN, "for (int i = threadIdx.x; i < n; "), (_STRIDE, "i += blockDim.x)")]],
    ),
    Mistake(
        2,
        "assigned",
        "y loses what it had: y = a * x + y adds to it.",
        [(_AXPY, "y[i] = a * x[i];")],
    ),
    Mistake(
        2,
        "factor-missing",
        "x is added as it is: the factor a is missing.",
        [(_AXPY, "y[i] = x[i] + y[i];")],
    ),
    Mistake(
        3,
        "down-the-columns",
        "Neighbouring threads go down a column, whose elements lie a whole row apart: a warp\n"
        "moves 32 sectors in the place of 4. Let neighbours take neighbours in a row.",
        [(_SCALE, "        m[i % rows * cols + i / rows] *= s[i / rows];")],
    ),
    Mistake(
        3,
        "by-rows",
        "You scale rows: s[r] in the place of s[c].",
        [(_SCALE, "        m[i] *= s[i / cols];")],
    ),
    Mistake(
        3,
        "remainder-by-rows",
        "Your column is the remainder by the number of rows; a row has cols elements.",
        [(_SCALE, "        m[i] *= s[i % rows];")],
    ),
    Mistake(
        3,
        "matrix-without-guard",
        "Threads beyond the last element of the matrix touch what lies behind it.",
        [(_IN_MATRIX, "")],
    ),
    Mistake(
        4,
        "zero-passes",
        "The gradient passes where y is 0: y >= 0 is true everywhere. Behind a ReLU y = 0 means\n"
        "that x was not above it.",
        [(_BACK, _BACK.replace("y[i] > 0.0f", "y[i] >= 0.0f"))],
    ),
    Mistake(
        4,
        "zeros-not-written",
        "Where y is 0 you write nothing: gx holds what was there before. Memory on a GPU is not\n"
        "set to 0.",
        [(_BACK, "        if (y[i] > 0.0f)\n            gx[i] = gy[i];")],
    ),
    Mistake(
        4,
        "ignores-upstream",
        "You write 1 where y is above 0: that is the derivative of ReLU alone. The chain rule\n"
        "multiplies it by gy.",
        [(_BACK, "        gx[i] = y[i] > 0.0f ? 1.0f : 0.0f;")],
    ),
    Mistake(
        4,
        "sign-of-the-gradient",
        "You look at the sign of gy: it is y that says whether the ReLU was open.",
        [(_BACK, "        gx[i] = gy[i] > 0.0f ? gy[i] : 0.0f;")],
    ),
    Mistake(
        4,
        "grid-for-block",
        "blockIdx.x * gridDim.x: a block begins as many elements after the one before as it has\n"
        "threads, which is blockDim.x.",
        [
            (
                f"{_INDEX}    if (i < n)\n{_BACK}",
                f"{_INDEX.replace('blockDim', 'gridDim')}    if (i < n)\n{_BACK}",
            )
        ],
    ),
]
