"""What goes wrong in steps 5 and 6 of exercise 7, on the way back to the image."""

from tinygraph_course.content.exercise import Mistake

_BACK = "cols = cols.reshape(N, C, KH, KW, OH, OW)"
_ADD = "image[:, :, i : i + s[0] * OH : s[0], j : j + s[1] * OW : s[1]] +="
_LOOP = "for i in range(KH):\n        for j in range(KW):\n            "
_REVERSED = _LOOP.replace("range", "reversed(range").replace("):", ")):")
_CROP = "return image[:, :, p[0] : p[0] + H, p[1] : p[1] + W]"
_GW = "(gy @ cols.transpose(0, 2, 1)).sum(axis=0)"
_GB = "gb = gy.sum(axis=(0, 2))"

STRIDES = "Your strides are exchanged: s[0] belongs to the rows, s[1] to the columns."
NO_STRIDE = "Your window (u, v) begins at pixel (u, v): the stride is missing."
OF_MEMORY = "reshape moves no number: it cuts the memory, in its order, into other pieces."

ON_THE_WAY_BACK = [
    Mistake(
        5,
        "overwritten",
        "Windows overlap, and your image keeps of each pixel the entry that was written last.\n"
        "A pixel gets the sum of all of them: +=.",
        [(_ADD, _ADD[:-2] + "=")],
        [[(f"{_LOOP}{_ADD}", f"{_REVERSED}{_ADD[:-2]}=")]],
    ),
    Mistake(
        5,
        "padding-not-cropped",
        "Your image still has its padding. What falls there is left out: the image is (H, W).",
        [(_CROP, "return image")],
    ),
    Mistake(
        5,
        "empty-without-padding",
        "Without padding your image is empty: p[0] : -p[0] is 0 : 0 then, which is nothing. Say\n"
        "where it ends from the front: p[0] + H.",
        [(_CROP, "return image[:, :, p[0] : -p[0], p[1] : -p[1]]")],
    ),
    Mistake(
        5,
        "cropped-behind",
        "You cut 2p pixels off at the end. The image begins at pixel p of the padded one.",
        [(_CROP, "return image[:, :, :H, :W]")],
    ),
    Mistake(
        5,
        "averaged",
        "You divide by the number of windows of a pixel. That would undo im2col; a gradient goes\n"
        "the other way round and sums them.",
        [
            (
                _CROP,
                "many = 0 * image[0, 0]\n    for i in range(KH):\n        for j in range(KW):\n"
                "            many[i : i + s[0] * OH : s[0], j : j + s[1] * OW : s[1]] += 1\n    "
                f"{_CROP} / np.maximum(many, 1)[p[0] : p[0] + H, p[1] : p[1] + W]",
            )
        ],
    ),
    Mistake(
        5,
        "rows-channels-last",
        "You read the rows as (i, j, c); im2col has made them in the order (c, i, j).",
        [(_BACK, "cols = cols.reshape(N, KH, KW, C, OH, OW).transpose(0, 3, 1, 2, 4, 5)")],
    ),
    Mistake(
        5,
        "stride-missing-on-the-way-back",
        NO_STRIDE,
        [(_ADD, "image[:, :, i : i + OH, j : j + OW] +=")],
    ),
    Mistake(
        5,
        "strides-exchanged-on-the-way-back",
        STRIDES,
        [(_ADD, "image[:, :, i : i + s[1] * OH : s[1], j : j + s[0] * OW : s[0]] +=")],
    ),
    Mistake(
        5,
        "added-from-the-end",
        "Below 0 an index of numpy counts from the end: what falls on the padding is added to the\n"
        "other side. Leave it out, or add into a padded image and crop it.",
        [
            (
                _CROP,
                "image[:, :, H : H + p[0]] += image[:, :, : p[0]]\n"
                "    image[..., W : W + p[1]] += image[..., : p[1]]\n    " + _CROP,
            )
        ],
    ),
    Mistake(
        6,
        "no-pair",
        "forward gives back a pair: the output, and what backward needs.",
        [("self.padding), (x, w)", "self.padding)")],
    ),
    Mistake(
        6,
        "settings-exchanged",
        "Stride and padding of the op are exchanged.",
        [("gemm(x, w, b, self.stride, self.padding)", "gemm(x, w, b, self.padding, self.stride)")],
    ),
    Mistake(
        6,
        "no-tuple",
        "backward gives back a tuple, one gradient for each input: (gx, gw, gb).",
        [("return gx, gw, gb", "return gx")],
    ),
    Mistake(
        6,
        "order",
        "Your gradients come in another order than the inputs: gx, gw, gb.",
        [("return gx, gw, gb", "return gw, gx, gb")],
    ),
    Mistake(
        6,
        "gw-of-the-first-sample",
        "Your gw comes from sample 0 alone. All samples use the same weights: sum over them.",
        [(_GW, "(gy[0] @ cols[0].T)")],
    ),
    Mistake(
        6,
        "gw-of-the-last-sample",
        "Your gw comes from the last sample alone: each one writes over those before. Sum them.",
        [(_GW, "(gy[-1] @ cols[-1].T)")],
    ),
    Mistake(
        6,
        "gw-averaged",
        "Your gw is the mean over the samples. If the loss is a mean, gy is divided already.",
        [(_GW, _GW.replace("sum", "mean"))],
    ),
    Mistake(
        6,
        "gw-reshaped",
        f"Your gw was (C*KH*KW, O): transpose it first.\n{OF_MEMORY}",
        [(_GW, "(cols @ gy.transpose(0, 2, 1)).sum(axis=0)")],
    ),
    Mistake(
        6,
        "gx-through-a-flipped-kernel",
        "Your gx goes back through a flipped kernel. What pixel (i, j) of a window gave through\n"
        "w[i, j] comes back through w[i, j].",
        [("w.reshape(len(w), -1)\n", "w[..., ::-1, ::-1].reshape(len(w), -1)\n")],
    ),
    Mistake(
        6,
        "gb-averaged",
        "Your gb is a mean. Every output got the bias, and each of them sends its gy back: sum\n"
        "over samples and pixels.",
        [(_GB, "gb = gy.mean(axis=(0, 2))")],
        [[(_GB, "gb = gy.sum(axis=2).mean(axis=0)")], [(_GB, "gb = gy.mean(axis=2).sum(axis=0)")]],
    ),
    Mistake(
        6,
        "gb-of-each-sample",
        "Your gb has a row for each sample. All of them use the same bias: sum over them, too.",
        [(_GB, "gb = gy.sum(axis=2)")],
    ),
    Mistake(
        6,
        "gb-of-each-pixel",
        "Your gb has an entry for each pixel. A filter has one bias: sum over samples and pixels.",
        [(_GB, "gb = gy.sum(axis=(0, 1))")],
    ),
    Mistake(
        6,
        "ignores-upstream",
        "Your gradients are those of the sum of all outputs: the chain rule multiplies by gy.",
        [("gy = gy.reshape(", "gy = np.ones_like(gy).reshape(")],
    ),
]
