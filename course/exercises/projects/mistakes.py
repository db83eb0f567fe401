"""What goes wrong in exercise 16; of two that behave alike the first one is named."""

from tinygraph_course.content.exercise import Mistake
from tinygraph_course.exercises.projects.mistakes_in_measuring import IN_MEASURING

_LUMA = "(16 + np.tensordot(weights, rgb, 1)) / 255"
_WEIGHTS = "weights = np.array([65.481, 128.553, 24.966])"
_INNER = "inner = (slice(border, n - border) for n in y.shape)"
_ERROR = "np.mean((y - luma(rgb))[tuple(inner)] ** 2)"
_PSNR = "10 * np.log10(1 / error)"
_LOOPS = """    for top in range(0, low.shape[0] - size + 1, stride):
        for left in range(0, low.shape[1] - size + 1, stride):
"""
_MIDDLE = """                slice(top + margin, top + size - margin),
                slice(left + margin, left + size - margin),
"""
_STACKED = "return np.stack(inputs)[:, None], np.stack(targets)[:, None]"

MISTAKES = [
    Mistake(
        1,
        "mean-of-colours",
        "That is the mean of the three colours. The eye sees green far brighter than blue: each\n"
        "colour has a weight of its own.",
        [(_LUMA, "rgb.mean(axis=0).astype(float)")],
        [[(_LUMA, "(16 + 219 * rgb.mean(axis=0).astype(float)) / 255")]],
    ),
    Mistake(
        1,
        "full-range",
        "Those are 0.299, 0.587 and 0.114, with black at 0: luma as JPEG has it. BT.601 goes from\n"
        "16 to 235; a PSNR with the other one is not that of the papers.",
        [(_LUMA, "np.tensordot(np.array([0.299, 0.587, 0.114]), rgb, 1)")],
    ),
    Mistake(
        1,
        "offset-missing",
        "Black is 16/255 here and not 0: the offset is missing.",
        [(_LUMA, "np.tensordot(weights, rgb, 1) / 255")],
    ),
    Mistake(
        1,
        "not-divided-by-255",
        "Your luma goes from 16 to 235. Pictures are numbers from 0 to 1 here: divide by 255, the\n"
        "offset too.",
        [(_LUMA, "16 + np.tensordot(weights, rgb, 1)")],
        [[(_LUMA, "16 + np.tensordot(weights, rgb, 1) / 255")]],
    ),
    Mistake(
        1,
        "blue-first",
        "Red and blue are exchanged: some programs keep a picture as blue, green, red; here red\n"
        "is first.",
        [(_WEIGHTS, "weights = np.array([24.966, 128.553, 65.481])")],
    ),
    Mistake(
        1,
        "levels-divided-twice",
        "You divide rgb by 255, and it goes from 0 to 1 already.",
        [(_LUMA, "(16 + np.tensordot(weights, rgb / 255, 1)) / 255")],
        [[(_LUMA, "16 / 255 + np.tensordot(weights / 255, rgb / 255, 1)")]],
    ),
    Mistake(
        1,
        "rounded",
        "Your luma is rounded to whole levels. What the network learns from, and what is\n"
        "measured, is not.",
        [(_LUMA, "np.round(16 + np.tensordot(weights, rgb, 1)) / 255")],
    ),
    Mistake(
        2,
        "on-rgb",
        "You compare y with red, green and blue: numpy repeats y for each of them. Papers measure\n"
        "luma: compare with luma(rgb).",
        [
            (
                _ERROR,
                "np.mean((y - rgb)[(slice(None), *inner)] ** 2)",
            )
        ],
    ),
    Mistake(
        2,
        "without-border",
        "You measure the border too. Near the edge a filter sees what was made up there: papers\n"
        "leave out as many pixels as the scale.",
        [(_INNER, "inner = (slice(0, n) for n in y.shape)")],
    ),
    Mistake(
        2,
        "border-at-one-edge",
        "You leave out the border at the top and at the left, or at the bottom and at the right;\n"
        "there are four edges.",
        [(_INNER, "inner = (slice(border, n) for n in y.shape)")],
        [[(_INNER, "inner = (slice(0, n - border) for n in y.shape)")]],
    ),
    Mistake(
        2,
        "border-of-0",
        "With a border of 0 nothing is left: a slice [0:-0] is empty. Let it end at the size\n"
        "minus the border.",
        [(_INNER, "inner = (slice(border, -border) for n in y.shape)")],
    ),
    Mistake(
        2,
        "rounded-levels",
        "You round to whole levels before you measure. A network whose error is below half a\n"
        "level looks perfect then.",
        [
            (
                _ERROR,
                "np.mean(((np.rint(255 * y) - np.rint(255 * luma(rgb))) / 255)[tuple(inner)] ** 2)",
            )
        ],
        [[(_ERROR, "np.mean((np.rint(255 * y) / 255 - luma(rgb))[tuple(inner)] ** 2)")]],
    ),
    Mistake(
        2,
        "peak-of-255",
        "Your peak is 255 and the pictures go from 0 to 1: that is 48 dB too much. The peak is 1\n"
        "here, or both are multiplied by 255.",
        [(_PSNR, "10 * np.log10(255**2 / error)")],
    ),
    Mistake(
        2,
        "twice-the-decibel",
        "20 log10 belongs to the root of the mean squared error. For the mean squared error\n"
        "itself it is 10 log10.",
        [(_PSNR, "20 * np.log10(1 / error)")],
    ),
    Mistake(
        2,
        "half-the-decibel",
        "10 log10 belongs to the mean squared error. You take its root, or the mean of the\n"
        "absolute differences.",
        [(_PSNR, "10 * np.log10(1 / np.sqrt(error))")],
        [[(_ERROR, "np.mean(abs((y - luma(rgb))[tuple(inner)]))")]],
    ),
    Mistake(
        2,
        "natural-logarithm",
        "np.log is the natural logarithm. Decibel are tenths of a power of ten: np.log10.",
        [(_PSNR, "10 * np.log(1 / error)")],
    ),
    Mistake(
        2,
        "negative",
        "Your PSNR has the wrong sign: the smaller the error, the larger it is.",
        [(_PSNR, "10 * np.log10(error)")],
    ),
    Mistake(
        2,
        "sum-for-mean",
        "You add up the squared differences; a larger picture would look worse. Take their mean.",
        [(_ERROR, "np.sum((y - luma(rgb))[tuple(inner)] ** 2)")],
    ),
    Mistake(
        3,
        "target-not-cut",
        "Your targets are as large as the inputs. The network gives `margin` pixels less at each\n"
        "edge: the target is the middle of the window.",
        [(_MIDDLE, "slice(top, top + size), slice(left, left + size),\n")],
    ),
    Mistake(
        3,
        "target-in-the-corner",
        "Your target begins where the input begins. What the network computes first lies `margin`\n"
        "pixels further down and to the right: pixels are compared with their neighbours.",
        [
            (
                _MIDDLE,
                "slice(top, top + size - 2 * margin), slice(left, left + size - 2 * margin),\n",
            )
        ],
        [
            [
                (
                    _MIDDLE,
                    "slice(top + 2 * margin, top + size), slice(left + 2 * margin, left + size),\n",
                )
            ]
        ],
    ),
    Mistake(
        3,
        "margin-at-one-edge",
        "You take the margin off one end of the window, or only once of its size: it is missing\n"
        "at both ends.",
        [(_MIDDLE, "slice(top + margin, top + size), slice(left + margin, left + size),\n")],
        [[(_MIDDLE, "slice(top, top + size - margin), slice(left, left + size - margin),\n")]],
    ),
    Mistake(
        3,
        "target-without-details",
        "Your targets are cut from `low`: the network would learn to change nothing.",
        [("targets.append(high[middle])", "targets.append(low[middle])")],
    ),
    Mistake(
        3,
        "input-with-details",
        "Your inputs are cut from `high`: they have the details that the network is to find.",
        [("inputs.append(low[window])", "inputs.append(high[window])")],
    ),
    Mistake(
        3,
        "every-pixel",
        "Your windows begin at every pixel; they begin at multiples of the stride.",
        [(_LOOPS, _LOOPS.replace(", stride)", ")"))],
    ),
    Mistake(
        3,
        "side-by-side",
        "Your windows lie side by side: they begin at multiples of their size, not of the stride.",
        [(_LOOPS, _LOOPS.replace(", stride)", ", size)"))],
    ),
    Mistake(
        3,
        "last-window-lost",
        "The last window is missing, which ends where the picture ends: range stops before its\n"
        "end.",
        [(_LOOPS, _LOOPS.replace("size + 1", "size"))],
    ),
    Mistake(
        3,
        "square",
        "You take the picture for square: rows and columns have limits of their own.",
        [(_LOOPS, _LOOPS.replace("low.shape[1]", "low.shape[0]"))],
        [
            [
                (
                    _LOOPS,
                    _LOOPS.replace("shape[0]", "shape[1]").replace(
                        "range(0, low.shape[1] - size + 1, stride):\n        for",
                        "range(0, low.shape[1] - size + 1, stride):\n        for",
                    ),
                )
            ]
        ],
    ),
    Mistake(
        3,
        "column-by-column",
        "Your windows come column by column; row by row is asked for. For the network it is all\n"
        "one, for whoever wants to find a window again it is not.",
        [
            (
                _LOOPS,
                "    for left in range(0, low.shape[1] - size + 1, stride):\n"
                "        for top in range(0, low.shape[0] - size + 1, stride):\n",
            )
        ],
    ),
    Mistake(
        3,
        "channel-missing",
        "Your arrays have three axes. A network takes (N, C, H, W): luma is one channel.",
        [(_STACKED, "return np.stack(inputs), np.stack(targets)")],
    ),
    Mistake(
        4,
        "relu-at-the-end",
        "You end with a ReLU: what the network gives is never below 0, and where it is the\n"
        "gradient is gone. The last layer stands alone.",
        [
            (
                "return self.conv3(tg.relu(self.conv2(h)))",
                "return tg.relu(self.conv3(tg.relu(self.conv2(h))))",
            )
        ],
    ),
    Mistake(
        4,
        "relu-missing",
        "A ReLU is missing: two convolutions without one between them are a single convolution.",
        [("h = tg.relu(self.conv1(x))", "h = self.conv1(x)")],
        [
            [("return self.conv3(tg.relu(self.conv2(h)))", "return self.conv3(self.conv2(h))")],
            [
                ("h = tg.relu(self.conv1(x))", "h = self.conv1(x)"),
                ("return self.conv3(tg.relu(self.conv2(h)))", "return self.conv3(self.conv2(h))"),
            ],
        ],
    ),
    Mistake(
        4,
        "padded",
        "You pad with zeros: the output has the size of the input, and its edge is computed from\n"
        "pixels that do not exist. Nothing is padded here.",
        [
            ("tg.nn.Conv2d(1, n1, 9)", "tg.nn.Conv2d(1, n1, 9, padding=4)"),
            ("tg.nn.Conv2d(n2, 1, 5)", "tg.nn.Conv2d(n2, 1, 5, padding=2)"),
        ],
        [
            [("tg.nn.Conv2d(1, n1, 9)", "tg.nn.Conv2d(1, n1, 9, padding=4)")],
            [("tg.nn.Conv2d(n2, 1, 5)", "tg.nn.Conv2d(n2, 1, 5, padding=2)")],
        ],
    ),
    Mistake(
        4,
        "sizes-exchanged",
        "The sizes of the filters are exchanged: 9, then 1, then 5.",
        [
            ("tg.nn.Conv2d(1, n1, 9)", "tg.nn.Conv2d(1, n1, 5)"),
            ("tg.nn.Conv2d(n2, 1, 5)", "tg.nn.Conv2d(n2, 1, 9)"),
        ],
        [
            [
                ("tg.nn.Conv2d(n1, n2, 1)", "tg.nn.Conv2d(n1, n2, 5)"),
                ("tg.nn.Conv2d(n2, 1, 5)", "tg.nn.Conv2d(n2, 1, 1)"),
            ]
        ],
    ),
    Mistake(
        4,
        "filters-exchanged",
        "n1 and n2 are exchanged: conv1 has n1 filters, conv2 has n2.",
        [
            ("tg.nn.Conv2d(1, n1, 9)", "tg.nn.Conv2d(1, n2, 9)"),
            ("tg.nn.Conv2d(n1, n2, 1)", "tg.nn.Conv2d(n2, n1, 1)"),
            ("tg.nn.Conv2d(n2, 1, 5)", "tg.nn.Conv2d(n1, 1, 5)"),
        ],
    ),
    Mistake(
        4,
        "biases-missing",
        "Your convolutions have no bias; each filter has one.",
        [
            ("tg.nn.Conv2d(1, n1, 9)", "tg.nn.Conv2d(1, n1, 9, bias=False)"),
            ("tg.nn.Conv2d(n1, n2, 1)", "tg.nn.Conv2d(n1, n2, 1, bias=False)"),
            ("tg.nn.Conv2d(n2, 1, 5)", "tg.nn.Conv2d(n2, 1, 5, bias=False)"),
        ],
        [[("tg.nn.Conv2d(n2, 1, 5)", "tg.nn.Conv2d(n2, 1, 5, bias=False)")]],
    ),
    *IN_MEASURING,
]
