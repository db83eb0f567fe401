"""What goes wrong in steps 3 and 4 of exercise 12, the pooling."""

from tinygraph_course.content.exercise import Edits, Mistake

# Step 3
_GUARD = "    if (i >= planes * OH * OW)\n        return;\n"
_WINDOW = "    const int v = i % OW, u = i / OW % OH, plane = i / (OW * OH);\n"
_IMAGE = "    const float* image = x + plane * H * W;\n"
_WHERE = "    int where = u * S * W + v * S;\n"
_BEST = "    float best = image[where];\n"
_ROWS = "    for (int h = u * S; h < u * S + K; ++h)\n"
_PIXELS = "        for (int w = v * S; w < v * S + K; ++w)\n"
_LARGER = "            if (image[h * W + w] > best) {\n"
_MOVE = "                where = h * W + w;\n"
_TAKE = "                best = image[where];\n"
_KEEP = "    argmax[i] = where;\n"
# Step 4
_BACK_GUARD = "    if (i >= planes * H * W)\n        return;\n"
_OWNED = "    const int w = i % W, h = i / W % H, plane = i / (W * H);\n"
_SUM = "    float sum = 0.0f;\n    for (int kh = 0; kh < K; ++kh)\n"
_LOOPS = _SUM + "        for (int kw = 0; kw < K; ++kw) {\n"
_DOWN = (  # the same from the other end
    "    float sum = 0.0f;\n    for (int kh = K - 1; kh >= 0; --kh)\n"
    "        for (int kw = K - 1; kw >= 0; --kw) {\n"
)
_BACK = "            const int down = h - kh, right = w - kw;\n"
_TEST = (
    "            if (down < 0 || right < 0 || down % S != 0 || right % S != 0)\n"
    "                continue;\n"
)
_FOUND = "            const int u = down / S, v = right / S, window = (plane * OH + u) * OW + v;\n"
_WON = "            if (u < OH && v < OW && argmax[window] == h * W + w)\n"
_ADD = "                sum += gy[window];\n"
_WRITE = "    gx[i] = sum;\n"


def _other_test(words: str) -> Edits:
    return [(_BACK + _TEST, _BACK + f"            if ({words})\n                continue;\n")]


def _won(old: str, new: str) -> Edits:
    return [(_WON, _WON.replace(old, new))]


def _scattered(line: str, before: str = "") -> Edits:
    """A thread for each window, which changes its winner by `line`."""
    return [
        (
            _BACK_GUARD
            + _OWNED
            + _LOOPS
            + _BACK
            + _TEST
            + _FOUND
            + _WON
            + _ADD
            + "        }\n"
            + _WRITE,
            f"{before}    if (i < planes * OH * OW)\n        {line}\n",
        )
    ]


_ZERO = "    if (i < planes * H * W)\n        gx[i] = 0.0f;\n    __syncthreads();\n"
_WINNER = "gx[i / (OW * OH) * H * W + argmax[i]]"

IN_POOLING = [
    Mistake(
        3,
        "begins-at-zero",
        "A window of negative pixels gives 0: best begins at 0, which is larger than all of them.\n"
        "Begin with the first pixel of the window.",
        [(_BEST, "    float best = 0.0f;\n")],
    ),
    Mistake(
        3,
        "argmax-unset",
        "Best begins at minus infinity, and in a window of -inf no pixel is larger: argmax is\n"
        "never set. Begin with the first pixel, and its place.",
        [(_WHERE, "    int where = -1;\n"), (_BEST, "    float best = -INFINITY;\n")],
        [
            [(_WHERE, "    int where;\n"), (_BEST, "    float best = -INFINITY;\n")],
            [(_WHERE, "    int where = 0;\n"), (_BEST, "    float best = -INFINITY;\n")],
        ],
    ),
    Mistake(
        3,
        "last-of-equals",
        "Of equal pixels the last one wins: >= lets it. The first one stays where a later one has\n"
        "to be larger.",
        [(_LARGER, _LARGER.replace(">", ">="))],
    ),
    Mistake(
        3,
        "smallest",
        "You keep the smallest pixel of the window.",
        [(_LARGER, _LARGER.replace(">", "<"))],
    ),
    Mistake(
        3,
        "number-in-the-window",
        "argmax counts within the window. It is a place in the plane, h * W + w.",
        [(_KEEP, "    argmax[i] = (where / W - u * S) * K + where % W - v * S;\n")],
    ),
    Mistake(
        3,
        "numbered-over-all-planes",
        "argmax counts on from plane to plane. In each plane it begins anew: h * W + w.",
        [(_KEEP, "    argmax[i] = plane * H * W + where;\n")],
    ),
    Mistake(
        3,
        "rows-of-h",
        "argmax is h * H + w: a row has W pixels.",
        [(_KEEP, "    argmax[i] = where / W * H + where % W;\n")],
    ),
    Mistake(
        3,
        "place-not-kept",
        "The largest pixel is found, and argmax stays at the first pixel of the window: keep the\n"
        "place with the value.",
        [(_MOVE + _TAKE, "                best = image[h * W + w];\n")],
    ),
    Mistake(
        3,
        "window-number-as-place",
        "argmax holds the number of the window, which everybody knows. It shall say where in the\n"
        "image the largest pixel lies.",
        [(_KEEP, "    argmax[i] = u * OW + v;\n")],
        [[(_KEEP, "    argmax[i] = i;\n")]],
    ),
    Mistake(
        3,
        "windows-k-apart",
        "Your windows lie K apart: window u begins at u * S, also where S is not K.",
        [
            (_WHERE, "    int where = u * K * W + v * K;\n"),
            (_ROWS, _ROWS.replace("u * S", "u * K")),
            (_PIXELS, _PIXELS.replace("v * S", "v * K")),
        ],
    ),
    Mistake(
        3,
        "windows-of-s",
        "Your windows have S x S pixels. S is how far they lie apart; K x K is their size.",
        [(_ROWS + _PIXELS, _ROWS.replace("+ K", "+ S") + _PIXELS.replace("+ K", "+ S"))],
    ),
    Mistake(
        3,
        "windows-one-too-large",
        "<= takes one row, or one column, too many: K of them are h < u * S + K.",
        [(_ROWS + _PIXELS, (_ROWS + _PIXELS).replace("h <", "h <=").replace("w <", "w <="))],
        [
            [(_ROWS, _ROWS.replace("h <", "h <="))],
            [(_PIXELS, _PIXELS.replace("w <", "w <="))],
        ],
    ),
    Mistake(
        3,
        "plane-0-alone",
        "All planes get the windows of the first one: plane p begins at x + p * H * W.",
        [(_IMAGE, "    const float* image = x;\n")],
    ),
    Mistake(
        3,
        "pooling-windows-down-first",
        "Your windows are numbered column by column: v, across, is the last index.",
        [(_WINDOW, _WINDOW.replace("v = i % OW, u = i / OW % OH", "u = i % OH, v = i / OH % OW"))],
    ),
    Mistake(
        3,
        "pooling-without-guard",
        "The last block has more threads than there are windows left, and they write behind y and\n"
        "argmax. Only i < planes * OH * OW has a window.",
        [(_GUARD, "")],
    ),
    Mistake(
        4,
        "gradients-scattered",
        "A thread for each window adds to its winner, and windows overlap: two threads read a\n"
        "pixel, both add, and one addition is lost. Let a thread own a pixel.",
        _scattered(f"{_WINNER} += gy[i];", _ZERO),
        [_scattered(f"{_WINNER} += gy[i];"), _scattered(f"{_WINNER} = gy[i];", _ZERO)],
    ),
    Mistake(
        4,
        "atomic-gradients",
        "atomicAdd adds in the order in which threads come by, and floats round: other bits at\n"
        "each run. And nobody has set gx to 0 for all blocks. Let a thread own a pixel.",
        _scattered(f"atomicAdd(&{_WINNER}, gy[i]);", _ZERO),
        [_scattered(f"atomicAdd(&{_WINNER}, gy[i]);")],
    ),
    Mistake(
        4,
        "gradient-for-every-pixel",
        "Every pixel of a window gets its gradient. The winner alone does: the others did not\n"
        "change the output.",
        _won(" && argmax[window] == h * W + w", ""),
    ),
    Mistake(
        4,
        "compared-over-all-planes",
        "You compare argmax with i, which counts over all planes; argmax begins anew in each: it\n"
        "is h * W + w.",
        _won("h * W + w", "i"),
    ),
    Mistake(
        4,
        "compared-within-the-window",
        "You compare argmax with the place in the window, kh * K + kw. It is a place in the\n"
        "plane, h * W + w.",
        _won("h * W + w", "kh * K + kw"),
    ),
    Mistake(
        4,
        "gradients-of-plane-0",
        "All planes get the gradients of the first one: window (u, v) of plane p is number\n"
        "(p * OH + u) * OW + v.",
        [(_FOUND, _FOUND.replace("(plane * OH + u)", "u"))],
    ),
    Mistake(
        4,
        "pooling-stride-not-tested",
        "You round h - kh down to a window where S does not divide it: you meet the same window\n"
        "several times, and add its gradient each time.",
        _other_test("down < 0 || right < 0"),
        [
            _other_test("down < 0 || right < 0 || down % S != 0"),
            _other_test("down < 0 || right < 0 || right % S != 0"),
        ],
    ),
    Mistake(
        4,
        "window-minus-one",
        "Where h - kh, or w - kw, is negative there is no window, and you read one: number -1, or\n"
        "0, since C rounds -1 / 2 towards 0. Test the number before you divide it.",
        _other_test("down % S != 0 || right % S != 0"),
        [
            _other_test("right < 0 || down % S != 0 || right % S != 0"),
            _other_test("down < 0 || down % S != 0 || right % S != 0"),
        ],
    ),
    Mistake(
        4,
        "behind-the-last-pooling-window",
        "You read windows behind the last one: u goes to OH - 1, v to OW - 1. Pixels at the edge\n"
        "may lie in no window.",
        _won("u < OH && v < OW && ", ""),
        [_won("u < OH && ", ""), _won("v < OW && ", "")],
    ),
    Mistake(
        4,
        "last-window-alone",
        "The gradient of one window takes the place of another's: add them, a pixel may win in\n"
        "several windows.",
        [(_ADD, "                sum = gy[window];\n")],
        [[(_LOOPS, _DOWN), (_ADD, "                sum = gy[window];\n")]],
    ),
    Mistake(
        4,
        "one-window-for-a-pixel",
        "You look at window h / S, w / S alone. Where windows overlap others reach over this\n"
        "pixel, too, up to K / S of them on each axis.",
        [
            (
                _LOOPS + _BACK + _TEST + _FOUND,
                "    float sum = 0.0f;\n        {\n"
                "            const int u = h / S, v = w / S;\n"
                "            const int window = (plane * OH + u) * OW + v;\n",
            )
        ],
    ),
    Mistake(
        4,
        "losers-not-written",
        "Where no window sends a gradient you write nothing: gx holds what was there before.\n"
        "Memory on a GPU is not set to 0.",
        [(_WRITE, "    if (sum != 0.0f)\n        gx[i] = sum;\n")],
    ),
    Mistake(
        4,
        "ignores-upstream",
        "The winner gets 1 from each window: the chain rule multiplies that by gy.",
        [(_ADD, "                sum += 1.0f;\n")],
    ),
    Mistake(
        4,
        "gradients-without-guard",
        "The last block has more threads than there are pixels left, and they write behind gx.",
        [(_BACK_GUARD, "")],
    ),
    Mistake(
        4,
        "gradient-not-zeroed",
        "Your sum begins with whatever was in the register: give it the value 0.",
        [(_LOOPS, _LOOPS.replace(" = 0.0f", ""))],
    ),
]
