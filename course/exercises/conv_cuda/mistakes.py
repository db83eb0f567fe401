"""What goes wrong in exercise 12; of two that behave alike the first one is named."""

from tinygraph_course.content.exercise import Edits, Mistake
from tinygraph_course.exercises.conv_cuda.mistakes_in_pooling import IN_POOLING
from tinygraph_course.exercises.conv_cuda.mistakes_in_the_layer import IN_THE_LAYER

# Step 1
_WINDOW = "    const int v = i % OW, u = i / OW % OH;\n"
_PLACE = "    const int kw = i / (OW * OH) % KW, kh = i / (OW * OH * KW) % KH;\n"
_PLANE = "    const int plane = i / (OW * OH * KW * KH);  // n * C + c\n"
_PIXEL = "    const int h = u * S + kh - P, w = v * S + kw - P;\n"
_OUTSIDE = "    if (h < 0 || h >= H || w < 0 || w >= W)\n        return 0.0f;\n"
_READ = "    return x[(plane * H + h) * W + w];\n"
# Step 2; the kernel of step 4 has lines of the same words
_OWN = "    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
_GUARD = "    if (i >= N * C * H * W)\n        return;\n"
_OWNED = "    const int w = i % W, h = i / W % H, plane = i / (W * H);\n"
_SUM = "    float sum = 0.0f;\n    for (int kh = 0; kh < KH; ++kh)\n"
_LOOPS = _SUM + "        for (int kw = 0; kw < KW; ++kw) {\n"
_DOWN = (  # the same from the other end
    "    float sum = 0.0f;\n    for (int kh = KH - 1; kh >= 0; --kh)\n"
    "        for (int kw = KW - 1; kw >= 0; --kw) {\n"
)
_BACK = "            const int down = h + P - kh, right = w + P - kw;\n"
_TEST = (
    "            if (down < 0 || right < 0 || down % S != 0 || right % S != 0)\n"
    "                continue;\n"
)
_FOUND = "            const int u = down / S, v = right / S;\n"
_INSIDE = "            if (u < OH && v < OW)\n"
_ADD = "                sum += cols[(((plane * KH + kh) * KW + kw) * OH + u) * OW + v];\n"
_WRITE = "    image[i] = sum;\n"


def _other_test(words: str) -> Edits:
    return [(_BACK + _TEST, _BACK + f"            if ({words})\n                continue;\n")]


def _scattered(line: str, before: str = "") -> Edits:
    """A thread for each window, which goes through its pixels and changes them by `line`."""
    return [
        (
            _GUARD
            + _OWNED
            + _LOOPS
            + _BACK
            + _TEST
            + _FOUND
            + _INSIDE
            + _ADD
            + "        }\n"
            + _WRITE,
            f"{before}    if (i >= N * C * OH * OW)\n        return;\n"
            "    const int v = i % OW, u = i / OW % OH, plane = i / (OW * OH);\n"
            "    for (int kh = 0; kh < KH; ++kh)\n"
            "        for (int kw = 0; kw < KW; ++kw) {\n"
            "            const int h = u * S + kh - P, w = v * S + kw - P;\n"
            "            const int k = (((plane * KH + kh) * KW + kw) * OH + u) * OW + v;\n"
            "            if (0 <= h && h < H && 0 <= w && w < W)\n"
            f"                {line}\n"
            "        }\n",
        )
    ]


_ZERO = "    if (i < N * C * H * W)\n        image[i] = 0.0f;\n    __syncthreads();\n"
_PLUS = "image[(plane * H + h) * W + w] += cols[k];"
_ATOMIC = "atomicAdd(&image[(plane * H + h) * W + w], cols[k]);"

MISTAKES = [
    Mistake(
        1,
        "above-and-left-untested",
        "A window that begins in the padding reads rows above the image, or columns left of it:\n"
        "h < 0 and w < 0 are outside, too.",
        [(_OUTSIDE, _OUTSIDE.replace("h < 0 || ", "").replace("w < 0 || ", ""))],
        [
            [(_OUTSIDE, _OUTSIDE.replace("h < 0 || ", ""))],
            [(_OUTSIDE, _OUTSIDE.replace("w < 0 || ", ""))],
        ],
    ),
    Mistake(
        1,
        "below-and-right-untested",
        "A window that ends in the padding reads below the image, or right of it: in a row of W\n"
        "pixels w = W is outside already, and so is h = H.",
        [(_OUTSIDE, _OUTSIDE.replace("h >= H || ", "").replace(" || w >= W", ""))],
        [
            [(_OUTSIDE, _OUTSIDE.replace("h >= H || ", ""))],
            [(_OUTSIDE, _OUTSIDE.replace(" || w >= W", ""))],
            [(_OUTSIDE, _OUTSIDE.replace(">=", ">"))],
        ],
    ),
    Mistake(
        1,
        "bound-of-the-windows",
        "You compare pixels with the number of windows: h < OH, w < OW. The image has H rows and\n"
        "W columns.",
        [(_OUTSIDE, _OUTSIDE.replace(">= H", ">= OH").replace(">= W", ">= OW"))],
    ),
    Mistake(
        1,
        "remainder-before-the-quotient",
        "You take the remainder first and divide then. It is the other way round: in (..., a, b)\n"
        "index a is i / (size of b) % (size of a).",
        [
            (_WINDOW, "    const int v = i % OW, u = i % OH / OW;\n"),
            (_PLACE, "    const int kw = i % KW / (OW * OH), kh = i % KH / (OW * OH * KW);\n"),
        ],
        [
            [(_WINDOW, "    const int v = i % OW, u = i % OH / OW;\n")],
            [(_PLACE, "    const int kw = i % KW / (OW * OH), kh = i % KH / (OW * OH * KW);\n")],
        ],
    ),
    Mistake(
        1,
        "windows-down-first",
        "Your windows are numbered column by column. They go row by row: v, across, is the last\n"
        "index, and neighbours in a warp have neighbours of it.",
        [(_WINDOW, "    const int u = i % OH, v = i / OH % OW;\n")],
    ),
    Mistake(
        1,
        "quotient-not-limited",
        "A remainder is missing: i / OW counts the rows of windows of all channels and images,\n"
        "and does not begin anew.",
        [(_WINDOW, _WINDOW.replace(" % OH", ""))],
        [[(_PLACE, _PLACE.replace(" % KH", ""))], [(_PLACE, _PLACE.replace(" % KW", ""))]],
    ),
    Mistake(
        1,
        "window-turned",
        "The place in the window is counted column by column: kw is the later index, kh the\n"
        "earlier one.",
        [
            (
                _PLACE,
                "    const int kh = i / (OW * OH) % KH, kw = i / (OW * OH * KH) % KW;\n",
            )
        ],
    ),
    Mistake(
        1,
        "channels-last",
        "Your columns go place by place, and within a place channel by channel: (KH, KW, C). The\n"
        "rows of the weights are ordered (C, KH, KW).",
        [
            (
                _PLACE + _PLANE,
                "    const int c = i / (OW * OH) % C, kw = i / (OW * OH * C) % KW;\n"
                "    const int kh = i / (OW * OH * C * KW) % KH;\n"
                "    const int plane = i / (OW * OH * C * KW * KH) * C + c;\n",
            )
        ],
    ),
    Mistake(
        1,
        "image-0-alone",
        "All images get the columns of the first one: the plane is n * C + c, and goes on behind\n"
        "the channels of an image.",
        [(_READ, _READ.replace("plane", "plane % C"))],
    ),
    Mistake(
        1,
        "one-channel",
        "All channels get the pixels of the first one: a window reaches through all of them, and\n"
        "each has rows of cols of its own.",
        [(_READ, _READ.replace("plane", "plane / C * C"))],
        [[(_READ, _READ.replace("(plane * H + h)", "h"))]],
    ),
    Mistake(
        1,
        "padding-not-subtracted",
        "Your windows begin at the image's first pixel. They begin P rows above it and P columns\n"
        "left of it.",
        [(_PIXEL, _PIXEL.replace(" - P", ""))],
    ),
    Mistake(
        1,
        "padding-added",
        "You add P: window 0 begins P pixels inside of the image. It begins outside: subtract.",
        [(_PIXEL, _PIXEL.replace("- P", "+ P"))],
    ),
    Mistake(
        1,
        "padding-in-strides",
        "Your padding is taken times S: (u - P) * S. It counts pixels, not windows.",
        [
            (
                _PIXEL,
                _PIXEL.replace("u * S + kh - P", "(u - P) * S + kh").replace(
                    "v * S + kw - P", "(v - P) * S + kw"
                ),
            )
        ],
    ),
    Mistake(
        1,
        "stride-ignored",
        "Your windows lie one pixel apart: window u begins at u * S - P.",
        [(_PIXEL, _PIXEL.replace("u * S", "u").replace("v * S", "v"))],
    ),
    Mistake(
        1,
        "places-strided",
        "You take the place in the window times S, too: (u + kh) * S. Its pixels lie side by\n"
        "side; the windows are S apart.",
        [
            (
                _PIXEL,
                _PIXEL.replace("u * S + kh", "(u + kh) * S").replace("v * S + kw", "(v + kw) * S"),
            )
        ],
    ),
    Mistake(
        1,
        "edge-repeated",
        "Outside of the image you take the pixel at its edge. What lies there reads 0.",
        [
            (
                _OUTSIDE + _READ,
                "    const int r = h < 0 ? 0 : h >= H ? H - 1 : h;\n"
                "    const int s = w < 0 ? 0 : w >= W ? W - 1 : w;\n"
                "    return x[(plane * H + r) * W + s];\n",
            )
        ],
    ),
    Mistake(
        1,
        "row-of-windows",
        "You count OW pixels in a row of the image: that is how many windows there are. A row has\n"
        "W pixels.",
        [(_READ, "    return x[(plane * H + h) * OW + w];\n")],
    ),
    Mistake(
        2,
        "scattered",
        "Each thread adds its window to the pixels below, and windows overlap: two threads read a\n"
        "pixel, both add, and one addition is lost. Let a thread own a pixel.",
        _scattered(_PLUS, _ZERO),
        [_scattered(_PLUS)],
    ),
    Mistake(
        2,
        "atomics",
        "atomicAdd adds in the order in which threads come by, and floats round: other bits at\n"
        "each run. And nobody has set image to 0 for all blocks. Let a thread own a pixel.",
        _scattered(_ATOMIC, _ZERO),
        [_scattered(_ATOMIC)],
    ),
    Mistake(
        2,
        "stride-not-tested",
        "You round h + P - kh down to a window where S does not divide it: no window has this\n"
        "pixel at that place.",
        _other_test("down < 0 || right < 0"),
        [
            _other_test("down < 0 || right < 0 || down % S != 0"),
            _other_test("down < 0 || right < 0 || right % S != 0"),
        ],
    ),
    Mistake(
        2,
        "before-the-first-window",
        "Where h + P - kh is negative there is no window, and you read one: number -1, or 0,\n"
        "since C rounds -1 / 2 towards 0. Test the number before you divide it; the same for w.",
        _other_test("down % S != 0 || right % S != 0"),
        [
            _other_test("right < 0 || down % S != 0 || right % S != 0"),
            _other_test("down < 0 || down % S != 0 || right % S != 0"),
        ],
    ),
    Mistake(
        2,
        "behind-the-last-window",
        "You read windows behind the last one: u goes to OH - 1, v to OW - 1.",
        [(_INSIDE + _ADD, _ADD)],
        [
            [(_INSIDE, "            if (u < OH)\n")],
            [(_INSIDE, "            if (v < OW)\n")],
            [(_INSIDE, "            if (u <= OH && v <= OW)\n")],
        ],
    ),
    Mistake(
        2,
        "windows-bounded-by-the-image",
        "You let windows pass up to H and W, the size of the image. There are OH rows of windows\n"
        "and OW in each.",
        [(_INSIDE, "            if (u < H && v < W)\n")],
    ),
    Mistake(
        2,
        "padding-missing-on-the-way-back",
        "You leave out P: forward a window reads row u * S + kh - P, so that u * S = h + P - kh.",
        [(_BACK, _BACK.replace(" + P", ""))],
    ),
    Mistake(
        2,
        "padding-subtracted-twice",
        "You subtract P once more: forward h = u * S + kh - P, so that u * S = h + P - kh.",
        [(_BACK, _BACK.replace("+ P", "- P"))],
    ),
    Mistake(
        2,
        "place-added",
        "You add kh: u * S = h + P + kh. A window that has this row further down begins further\n"
        "up: subtract.",
        [(_BACK, _BACK.replace("- k", "+ k"))],
    ),
    Mistake(
        2,
        "one-window-alone",
        "Each element of cols takes the place of the one before: add them. A pixel was copied\n"
        "into several windows.",
        [(_ADD, _ADD.replace("+=", "="))],
        [
            [
                (_LOOPS, _DOWN),
                (_ADD, _ADD.replace("+=", "=")),
            ]
        ],
    ),
    Mistake(
        2,
        "averaged",
        "You divide by the number of windows over a pixel: that would give the image back. The\n"
        "gradient is the sum.",
        [
            (_LOOPS, "    int count = 0;\n" + _LOOPS),
            (
                _INSIDE + _ADD,
                f"            if (u < OH && v < OW) {{\n    {_ADD}"
                "                ++count;\n            }\n",
            ),
            (_WRITE, "    image[i] = count > 0 ? sum / count : 0.0f;\n"),
        ],
    ),
    Mistake(
        2,
        "sum-not-zeroed",
        "Your sum begins with whatever was in the register: give it the value 0.",
        [(_LOOPS, _LOOPS.replace(" = 0.0f", ""))],
    ),
    Mistake(
        2,
        "added-to-what-was-there",
        "You add to what lies in image, and nobody has set it to 0. Sum up in a variable, and\n"
        "write once.",
        [(_WRITE, "    image[i] += sum;\n")],
        [
            [
                (_LOOPS, _LOOPS.removeprefix("    float sum = 0.0f;\n")),
                (_ADD, _ADD.replace("sum", "image[i]")),
                (_WRITE, ""),
            ]
        ],
    ),
    Mistake(
        2,
        "no-guard",
        "The last block has more threads than there are pixels left, and they write behind the\n"
        "image. Only i < N * C * H * W has a pixel.",
        [(_GUARD, "")],
    ),
    Mistake(
        2,
        "as-many-as-windows",
        "Your guard counts windows, N * C * OH * OW. A thread owns a pixel: N * C * H * W.",
        [(_GUARD, _GUARD.replace("H * W", "OH * OW"))],
    ),
    Mistake(
        2,
        "first-image-on-the-way-back",
        "All images get the sums of the first one: the columns of image n lie behind those of the\n"
        "images before it, at plane n * C + c.",
        [(_ADD, _ADD.replace("plane", "plane % C"))],
    ),
    *IN_POOLING,
    *IN_THE_LAYER,
]
