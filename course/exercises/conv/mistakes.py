"""What goes wrong in exercise 7; of two that behave alike the first one is named."""

from tinygraph_course.content.exercise import Mistake
from tinygraph_course.exercises.conv.mistakes_on_the_way_back import (
    NO_STRIDE,
    OF_MEMORY,
    ON_THE_WAY_BACK,
    STRIDES,
)

_COUNT = "(n + 2 * p - k) // s + 1"
_SIZES = "OH, OW = out_size(H, KH, s[0], p[0]), out_size(W, KW, s[1], p[1])"
_TURNED = "OH, OW = out_size(H, KH, s[1], p[0]), out_size(W, KW, s[0], p[1])"
_PAD_ALL = "image = np.pad(x, ((0, 0), (0, 0), (p[0], p[0]), (p[1], p[1])))"
_PAD = f"{_PAD_ALL}\n    y = "
_CORNER, _EXCHANGED = "top, left = u * s[0], v * s[1]", "top, left = u * s[1], v * s[0]"
_WINDOW = "window = image[:, None, :, top : top + KH, left : left + KW]"
_PLACED = "image[:, None, :, np.arange(top, top + KH)[:, None], np.arange(left, left + KW)]"
_SUM = "(w * window).sum(axis=(2, 3, 4)) + b"
_SLICE = "= image[:, :, i : i + s[0] * OH : s[0], j : j + s[1] * OW : s[1]]"
_COLS = "return cols.reshape(N, C * KH * KW, OH * OW)"
_BARE = "w.reshape(len(w), -1) @ cols"
_PRODUCT = f"{_BARE} + b[:, None]"
_IMAGES = "return y.reshape(len(x), len(w), OH, OW)"


def _padded(rows: str, columns: str, mode: str = "constant", of: str = "x") -> tuple[str, str]:
    """An edit of the padding in `direct`."""
    return _PAD, f'image = np.pad({of}, ((0, 0), (0, 0), {rows}, {columns}), "{mode}")\n    y = '


_FROM_THE_END = 'np.pad(x, ((0, 0), (0, 0), (p[0], 0), (p[1], 0)), "wrap")'
_FLIPPED = (
    "Your kernel is flipped: w[0, 0] meets the last pixel of the window. In the books that is\n"
    "convolution; networks use correlation, w[i, j] with pixel (i, j)."
)
_WRAPPED = (
    "Below 0 an index of numpy counts from the end: pixels of the other side come in where\n"
    "padding stands. Pad with zeros, or leave out what is not 0 <= h < H, 0 <= w < W."
)
_ALONG = (
    "Your bias is one for each pixel: numpy fits b to the last axis. It belongs to the\n"
    "filters: b[:, None] puts it there."
)

MISTAKES = [
    Mistake(
        1,
        "place-lost",
        "One place is missing: you count the moves from place to place, and there is one place\n"
        "more than moves.",
        [(_COUNT, "(n + 2 * p - k) // s")],
    ),
    Mistake(
        1,
        "padding-not-counted",
        "You do not count the zeros: with them the kernel moves over n + 2p pixels.",
        [(_COUNT, "(n - k) // s + 1")],
    ),
    Mistake(
        1,
        "padded-on-one-side",
        "You count the zeros of one side. There are p before the pixels, and p behind them.",
        [(_COUNT, "(n + p - k) // s + 1")],
    ),
    Mistake(
        1,
        "rounded-up",
        "Your last kernel reaches beyond the zeros: you round up. Here a place where the kernel\n"
        "does not fit is left out.",
        [(_COUNT, "-(-(n + 2 * p - k) // s) + 1")],
    ),
    Mistake(
        1,
        "stride-not-counted",
        "Those are the places at stride 1. With stride s the kernel takes every s-th of them.",
        [(_COUNT, "n + 2 * p - k + 1")],
    ),
    Mistake(
        1,
        "not-rounded",
        "Where the stride does not divide, you get a fraction: / is exact, // rounds down.",
        [(_COUNT, "(n + 2 * p - k) / s + 1")],
    ),
    Mistake(2, "flipped", _FLIPPED, [("(w * window)", "(w[..., ::-1, ::-1] * window)")]),
    Mistake(
        2,
        "first-channel-alone",
        "Your output comes from the first channel alone. A filter has a slice for each channel,\n"
        "and all their products are summed.",
        [(_SUM, "(w * window)[:, :, 0].sum(axis=(2, 3)) + b")],
    ),
    Mistake(
        2,
        "last-channel-alone",
        "Your output holds the last channel alone: each one writes over those before. Sum them.",
        [(_SUM, "(w * window)[:, :, -1].sum(axis=(2, 3)) + b")],
    ),
    Mistake(
        2,
        "bias-in-the-sum",
        "Your bias is added several times for each output: it stands in a sum or a loop over\n"
        "channels or pixels of the window. Add it once.",
        [(_SUM, "(w * window + b[:, None, None, None]).sum(axis=(2, 3, 4))")],
        [[(_SUM, f"{_SUM} * {n}")] for n in ("w.shape[1]", "KH", "KW", "w[0, :, 0].size")],
    ),
    Mistake(
        2,
        "bias-missing",
        "The bias is missing: b[o] is added to every output of filter o.",
        [(_SUM, "(w * window).sum(axis=(2, 3, 4))")],
    ),
    Mistake(
        2,
        "bias-along-pixels",
        _ALONG.replace("b[:, None]", "b[:, None, None]"),
        [(_SUM, "(w * window).sum(axis=(2, 3, 4))"), ("    return y\n", "    return y + b\n")],
    ),
    Mistake(2, "stride-missing", NO_STRIDE, [(_CORNER, "top, left = u, v")]),
    Mistake(
        2,
        "strides-exchanged",
        STRIDES,
        [(_CORNER, _EXCHANGED)],
        [[(f"{_SIZES}\n    {_PAD}", f"{_TURNED}\n    {_PAD}"), (_CORNER, _EXCHANGED)]],
    ),
    Mistake(
        2,
        "paddings-exchanged",
        "Your paddings are exchanged, or both are one: p[0] zeros belong above and below, p[1] on\n"
        "the left and on the right.",
        [_padded("(p[1], p[1])", "(p[0], p[0])")],
        [
            *([_padded(*2 * [f"(p[{i}], p[{i}])"])] for i in (0, 1)),
            [_padded("(p[1], p[1])", "(p[0], p[0])"), (_WINDOW, f"window = {_PLACED}")],
        ],
    ),
    Mistake(
        2,
        "all-padding-before",
        "All your zeros lie above and on the left, 2p of them: half of them belong on the other\n"
        "side.",
        [_padded("(2 * p[0], 0)", "(2 * p[1], 0)")],
    ),
    Mistake(
        2,
        "all-padding-behind",
        "All your zeros lie below and on the right: your first window begins at the first pixel,\n"
        "where it should begin p pixels before it.",
        [_padded("(0, 2 * p[0])", "(0, 2 * p[1])")],
    ),
    Mistake(
        2,
        "padding-missing",
        "There are no zeros: your windows begin at pixel (0, 0) and end beyond the image.",
        [(_PAD, "image = x\n    y = ")],
    ),
    Mistake(
        2,
        "first-pixels-as-padding",
        "Row 0 and column 0 of the image count as padding: they are inside, 0 <= h and not 0 < h.",
        [_padded("(p[0] + 1, p[0])", "(p[1] + 1, p[1])", of="x[:, :, 1:, 1:]")],
    ),
    Mistake(
        2,
        "counted-from-the-end",
        _WRAPPED,
        [_padded("(0, p[0])", "(0, p[1])", of=_FROM_THE_END)],
        [[_padded("(p[0], 0)", "(p[1], 0)", "wrap"), (_WINDOW, f"window = {_PLACED}")]],
    ),
    Mistake(
        3,
        "channels-last",
        "Your rows are ordered (i, j, c). A filter lies in memory as (c, i, j): the rows have to\n"
        "follow it, or each weight meets another pixel.",
        [(_COLS, _COLS.replace("cols.", "cols.transpose(0, 2, 3, 1, 4, 5)."))],
    ),
    Mistake(
        3,
        "windows-as-rows",
        "Each window of yours is a row. Here it is a column: (N, C*KH*KW, OH*OW).",
        [(_COLS, f"{_COLS}.transpose(0, 2, 1)")],
    ),
    Mistake(
        3,
        "windows-as-rows-reshaped",
        f"Your numbers are right and stand at other places.\n{OF_MEMORY}\n"
        "Transpose first, so that the windows come last.",
        [(_COLS, _COLS.replace("cols.", "cols.transpose(0, 4, 5, 1, 2, 3)."))],
    ),
    Mistake(
        3,
        "offsets-exchanged",
        "Your rows are ordered (c, j, i): they run down the window first. A filter lies in memory\n"
        "row by row, (c, i, j).",
        [(_COLS, _COLS.replace("cols.", "cols.swapaxes(2, 3)."))],
    ),
    Mistake(
        3,
        "places-exchanged",
        "Your columns are ordered (v, u): windows run down the image first. The output goes row\n"
        "by row, (u, v).",
        [(_COLS, _COLS.replace("cols.", "cols.swapaxes(4, 5)."))],
    ),
    Mistake(
        3,
        "padding-missing-in-columns",
        "There are no zeros around your image: your windows begin at pixel (0, 0).",
        [(f"{_PAD_ALL}\n    cols = np.empty", "image = x\n    cols = np.empty")],
        [[(_SLICE, _SLICE.replace("image", "x"))]],
    ),
    Mistake(
        3, "flipped-columns", _FLIPPED, [(_SLICE, f"{_SLICE}\n    cols = cols[:, :, ::-1, ::-1]")]
    ),
    Mistake(
        3,
        "stride-missing-in-columns",
        NO_STRIDE,
        [(_SLICE, "= image[:, :, i : i + OH, j : j + OW]")],
    ),
    Mistake(
        3,
        "strides-exchanged-in-columns",
        STRIDES,
        [(_SLICE, "= image[:, :, i : i + s[1] * OH : s[1], j : j + s[0] * OW : s[0]]")],
    ),
    Mistake(
        4,
        "product-without-bias",
        "The bias is missing: b[o] is added to row o of the product.",
        [(_PRODUCT, _BARE)],
    ),
    Mistake(
        4,
        "by-loops",
        "You call `direct`: the numbers are right, by the loops of step 2. Here im2col makes the\n"
        "columns, and one product does the rest.",
        [
            ("    cols = im2col(x, (KH, KW), s, p)  # (N, C*KH*KW, OH*OW)\n", ""),
            (f"    y = {_PRODUCT}  # (N, O, OH*OW)\n", ""),
            (_IMAGES, "return direct(x, w, b, s, p)"),
        ],
    ),
    Mistake(4, "bias-along-columns", _ALONG, [(_PRODUCT, f"{_BARE} + b")]),
    Mistake(
        4,
        "bias-along-the-width",
        _ALONG.replace("b[:, None]", "b[:, None, None]"),
        [(_PRODUCT, _BARE), (_IMAGES, f"{_IMAGES} + b")],
    ),
    Mistake(
        4,
        "samples-and-filters-mixed",
        f"Samples and filters are mixed up: your product was (O, N, ...), as np.dot gives it.\n"
        f"{OF_MEMORY}",
        [
            (_PRODUCT, _BARE),
            (_IMAGES, _IMAGES.replace("y.", "y.swapaxes(0, 1).") + " + b[:, None, None]"),
        ],
    ),
    Mistake(
        4,
        "pixels-and-filters-mixed",
        f"Pixels and filters are mixed up: your product has the filters last.\n{OF_MEMORY}\n"
        "Transpose first, so that the filters stand before the pixels.",
        [(_IMAGES, _IMAGES.replace("y.", "y.swapaxes(1, 2)."))],
    ),
    Mistake(
        4,
        "height-and-width-exchanged",
        "You give your output its width before its height: it is (N, O, OH, OW).",
        [(_IMAGES, _IMAGES.replace("OH, OW", "OW, OH"))],
    ),
    Mistake(
        4,
        "still-columns",
        "Your output is still (N, O, OH*OW): make images of its columns, (N, O, OH, OW).",
        [(_IMAGES, "return y")],
    ),
    Mistake(
        4,
        "filters-cut-elsewhere",
        f"Your rows are no filters; w.reshape(O, -1) leaves each of them whole.\n{OF_MEMORY}",
        [(_PRODUCT, "w.reshape(-1, len(w)).T @ cols + b[:, None]")],
    ),
    Mistake(
        4,
        "filters-channels-last",
        "Your filters are ordered (i, j, c), the columns (c, i, j): each weight meets another\n"
        "pixel.",
        [(_PRODUCT, "w.transpose(0, 2, 3, 1).reshape(len(w), -1) @ cols + b[:, None]")],
    ),
    Mistake(4, "flipped-filters", _FLIPPED, [(_PRODUCT, f"w[..., ::-1, ::-1].{_PRODUCT[2:]}")]),
    *ON_THE_WAY_BACK,
]
