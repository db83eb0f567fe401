"""What goes wrong in step 5 of exercise 12, the layer in one launch."""

from tinygraph_course.content.exercise import Mistake

_SIZES = "    const int n = blockIdx.x, taps = C * KH * KW, windows = OH * OW;\n"
_IMAGE = "    const float* image = x + n * C * H * W;\n"
_MINE = "    float* mine = cols + n * taps * windows;\n"
_FILL = "    for (int i = threadIdx.x; i < taps * windows; i += blockDim.x)\n"
_FILL_BY_ROWS = (  # the same, row of cols by row
    "    for (int t = 0; t < taps; ++t)\n"
    "    for (int i = t * windows + threadIdx.x; i < (t + 1) * windows; i += blockDim.x)\n"
)
_COLUMN = "        mine[i] = column(image, i, C, H, W, KH, KW, S, P, OH, OW);\n"
_BARRIER = "    __syncthreads();\n    for (int i = threadIdx.x; i < D"
_OUTPUTS = "    for (int i = threadIdx.x; i < D * windows; i += blockDim.x) {\n"
_WHICH = "        const int d = i / windows, window = i % windows;\n"
_BEGIN = "        float sum = b[d];\n"
_TAPS = "        for (int t = 0; t < taps; ++t)\n"
_ADD = "            sum += weight[d * taps + t] * mine[t * windows + window];\n"
_WRITE = "        y[n * D * windows + i] = sum;\n"

IN_THE_LAYER = [
    Mistake(
        5,
        "no-barrier",
        "You multiply right after filling the columns: nothing says that the other threads have\n"
        "written theirs. Between the two loops there is a barrier for the block.",
        [(_BARRIER, _BARRIER.removeprefix("    __syncthreads();\n"))],
    ),
    Mistake(
        5,
        "barrier-for-a-warp",
        "__syncwarp() waits for the threads of a warp. The columns are written by all threads of\n"
        "the block: __syncthreads().",
        [(_BARRIER, _BARRIER.replace("threads()", "warp()"))],
    ),
    Mistake(
        5,
        "barrier-inside-the-loop",
        "Your barrier stands in the loop, and in its last round some threads have no element:\n"
        "they never come to it. It belongs behind the loop, where all come by.",
        [
            (
                _FILL + _COLUMN + _BARRIER,
                _FILL.replace(")\n", ") {\n")
                + _COLUMN
                + "        __syncthreads();\n    }\n"
                + _BARRIER.removeprefix("    __syncthreads();\n"),
            )
        ],
    ),
    Mistake(
        5,
        "one-element-for-each-thread",
        "Each thread fills one element, or makes one output, and stops, or goes on by the threads\n"
        "of the whole grid. A block has its image for itself: go on by blockDim.x.",
        [
            (_FILL, "    if (const int i = threadIdx.x; i < taps * windows)\n"),
            (_OUTPUTS, "    if (const int i = threadIdx.x; i < D * windows) {\n"),
        ],
        [
            [(_FILL, "    if (const int i = threadIdx.x; i < taps * windows)\n")],
            [(_OUTPUTS, "    if (const int i = threadIdx.x; i < D * windows) {\n")],
        ],
    ),
    Mistake(
        5,
        "all-do-everything",
        "Every thread fills all columns: they write the same elements. Thread t takes elements t,\n"
        "t + blockDim.x, and so on.",
        [(_FILL, "    for (int i = 0; i < taps * windows; ++i)\n")],
    ),
    Mistake(
        5,
        "strided-over-the-grid",
        "You begin, or go on, by the threads of the whole grid: elements of this image are left\n"
        "out. A block has an image for itself: threadIdx.x and blockDim.x.",
        [
            (
                _FILL,
                "    for (int i = n * blockDim.x + threadIdx.x; i < taps * windows;\n"
                "         i += gridDim.x * blockDim.x)\n",
            ),
            (
                _OUTPUTS,
                "    for (int i = n * blockDim.x + threadIdx.x; i < D * windows;\n"
                "         i += gridDim.x * blockDim.x) {\n",
            ),
        ],
    ),
    Mistake(
        5,
        "image-0-for-all-blocks",
        "Every block makes the columns of image 0: image n begins at x + n * C * H * W.",
        [(_IMAGE, "    const float* image = x;\n")],
    ),
    Mistake(
        5,
        "columns-shared-by-blocks",
        "All blocks write their columns to the same place. Each has its own: image n has C * KH *\n"
        "KW * OH * OW elements of cols behind those of the images before it.",
        [(_MINE, "    float* mine = cols;\n")],
        [[(_MINE, "    float* mine = cols;\n"), (_FILL, _FILL_BY_ROWS)]],
    ),
    Mistake(
        5,
        "all-blocks-to-image-0",
        "Every block writes the outputs of image 0: those of image n begin at n * D * OH * OW.",
        [(_WRITE, "        y[i] = sum;\n")],
    ),
    Mistake(
        5,
        "bias-left-out",
        "The bias is missing: b[d] is added to each output, once.",
        [(_BEGIN, "        float sum = 0.0f;\n")],
    ),
    Mistake(
        5,
        "bias-for-each-window",
        "Your bias goes by windows, or by images. A filter has one: b[d].",
        [(_BEGIN, "        float sum = b[window % D];\n")],
        [
            [(_BEGIN, "        float sum = b[window];\n")],
            [(_BEGIN, "        float sum = b[n % D];\n")],
            [(_BEGIN, "        float sum = b[i % D];\n")],
        ],
    ),
    Mistake(
        5,
        "bias-for-each-tap",
        "The bias is added with every product: it comes once for each output.",
        [
            (_BEGIN, "        float sum = 0.0f;\n"),
            (_ADD, _ADD.replace("sum += ", "sum += b[d] + ")),
        ],
    ),
    Mistake(
        5,
        "sum-without-a-value",
        "Your sum begins with whatever was in the register. Begin with b[d], or with 0 if you add\n"
        "b[d] at the end.",
        [(_BEGIN, "        float sum;\n")],
    ),
    Mistake(
        5,
        "one-channel-summed",
        "You sum over KH * KW places: a filter reaches through all C channels.",
        [(_TAPS, "        for (int t = 0; t < KH * KW; ++t)\n")],
    ),
    Mistake(
        5,
        "weight-by-columns",
        "You read weight[t * D + d]. The rows of weight are filters, C * KH * KW numbers each.",
        [(_ADD, _ADD.replace("d * taps + t", "t * D + d"))],
    ),
    Mistake(
        5,
        "weight-rows-of-windows",
        "A row of weight has C * KH * KW numbers; you count windows.",
        [(_ADD, _ADD.replace("d * taps + t", "d * windows + t"))],
    ),
    Mistake(
        5,
        "columns-turned",
        "You go along a row of cols. A window is a column: its elements lie OH * OW apart.",
        [(_ADD, _ADD.replace("t * windows + window", "window * taps + t"))],
    ),
    Mistake(
        5,
        "outputs-turned",
        "Element i of y is output i % D of window i / D in your kernel: y goes filter by filter,\n"
        "(D, OH, OW).",
        [(_WHICH, "        const int d = i % D, window = i / D;\n")],
    ),
    Mistake(
        5,
        "last-product-alone",
        "Each product takes the place of the sum: add them.",
        [(_ADD, _ADD.replace("+=", "="))],
    ),
]
