"""What goes wrong in exercise 8; of two that behave alike the first one is named."""

from tinygraph_course.content.exercise import Mistake

_COUNT = "(size - kernel) // stride + 1"
_CORNER = "top, left = u * stride, v * stride\n            y["
_MAX = ".max(axis=(2, 3))"
_NUMBER = "(top + i) * W + (left + j)"
_FIRST = "i, j = np.divmod(window.argmax(axis=2), kernel)"
_ADD = "np.add.at(gx, (n, c, argmax), gy)"
_SAVED = "saved = positions(x, self.kernel, self.stride), x.shape"
_GIVEN = "return (backward(gy, argmax, shape),)"

MISTAKES = [
    Mistake(
        1,
        "window-lost",
        "One window is missing: you count the steps from window to window, and there is one\n"
        "window more than steps.",
        [(_COUNT, "(size - kernel) // stride")],
    ),
    Mistake(
        1,
        "side-by-side",
        "You count windows that lie side by side. With a stride below the kernel they overlap,\n"
        "and more of them fit.",
        [(_COUNT, "size // kernel")],
    ),
    Mistake(
        1,
        "at-every-stride",
        "You let a window begin at every multiple of the stride; the last of them reach beyond\n"
        "the image. Take the kernel off the size first.",
        [(_COUNT, "size // stride")],
    ),
    Mistake(
        1,
        "rounded-up",
        "Your last window reaches beyond the image: you round up. Here a window that does not\n"
        "fit is left out.",
        [(_COUNT, "-(-(size - kernel) // stride) + 1")],
    ),
    Mistake(
        1,
        "beginnings-divided",
        "You divide the number of pixels at which a window could begin. The first begins at 0:\n"
        "divide how far it can move, and count the first one besides.",
        [(_COUNT, "(size - kernel + 1) // stride")],
    ),
    Mistake(
        2,
        "square",
        "You take the image for square: the windows of a row are counted from its height.",
        [("windows(W, kernel, stride)\n    y = ", "windows(H, kernel, stride)\n    y = ")],
    ),
    Mistake(
        2,
        "stride-missing",
        "Your window (u, v) begins at pixel (u, v): the stride is missing.",
        [(_CORNER, "top, left = u, v\n            y[")],
    ),
    Mistake(
        2,
        "kernel-for-stride",
        "Your windows begin at multiples of the kernel, not of the stride.",
        [
            (
                _CORNER,
                "top, left = min(u * kernel, H - kernel), min(v * kernel, W - kernel)\n"
                "            y[",
            )
        ],
        [[(_CORNER, "top, left = u * kernel, v * kernel\n            y[")]],
    ),
    Mistake(
        2,
        "begins-at-zero",
        "A window of negative pixels gives 0. A running maximum begins at minus infinity, or at\n"
        "the first pixel of the window.",
        [(_MAX, ".max(axis=(2, 3), initial=0)")],
    ),
    Mistake(
        2,
        "over-the-batch",
        "You take one maximum over all samples and channels: max needs the axes of the window.",
        [(_MAX, ".max()")],
    ),
    Mistake(
        2,
        "over-channels",
        "Your maximum goes over the channels too: each channel has one of its own.",
        [(_MAX, ".max(axis=(1, 2, 3))[:, None]")],
    ),
    Mistake(
        2,
        "mean",
        "That is the mean of each window: average pooling.",
        [(_MAX, ".mean(axis=(2, 3))")],
    ),
    Mistake(
        2,
        "minimum",
        "That is the smallest pixel of each window.",
        [(_MAX, ".min(axis=(2, 3))")],
    ),
    Mistake(
        3,
        "number-in-window",
        "Your number counts the pixels of the window, 0 to K*K - 1. backward does not know the\n"
        "window any more: the place in the image is wanted, h * W + w.",
        [(_NUMBER, "window.argmax(axis=2)")],
    ),
    Mistake(
        3,
        "last-of-equals",
        "Of equal maxima your last one wins; here it is the first, row by row. Behind a ReLU\n"
        "ties are everywhere: all its zeros.",
        [
            (
                _FIRST,
                "i, j = np.divmod(kernel * kernel - 1 - window[..., ::-1].argmax(axis=2), kernel)",
            )
        ],
    ),
    Mistake(
        3,
        "height-for-width",
        "A row has W pixels, so (h, w) is number h * W + w; you multiply by H. On square images\n"
        "nobody notices.",
        [(_NUMBER, "(top + i) * H + (left + j)")],
    ),
    Mistake(
        3,
        "axes-exchanged",
        "Rows and columns are exchanged: your number is w * W + h, or w * H + h.",
        [(_NUMBER, "(left + j) * W + (top + i)")],
        [[(_NUMBER, "(left + j) * H + (top + i)")]],
    ),
    Mistake(
        3,
        "corner-missing",
        "You count from the corner of the window: add where the window begins in the image.",
        [(_NUMBER, "i * W + j")],
    ),
    Mistake(
        3,
        "corner-without-stride",
        "You count from pixel (u, v): window (u, v) begins at (u * stride, v * stride).",
        [(_NUMBER, "(u + i) * W + (v + j)")],
        [
            [
                (
                    "top, left = u * stride, v * stride\n            window",
                    "top, left = u, v\n            window",
                )
            ]
        ],
    ),
    Mistake(
        3,
        "number-in-batch",
        "You number the pixels of the whole batch. Each sample and channel counts from 0, so that\n"
        "a number does not depend on the batch.",
        [(_NUMBER, f"{_NUMBER} + H * W * np.arange(N * C).reshape(N, C)")],
    ),
    Mistake(
        4,
        "overwritten",
        "Where windows overlap a pixel can win twice. gx[index] = gy keeps one of its gradients,\n"
        "and gx[index] += gy too, which reads, adds and writes once for each index.",
        [(_ADD, "gx[n, c, argmax] = gy")],
    ),
    Mistake(
        4,
        "to-all-pixels",
        "Every pixel gets a share. Only the one that won has an influence on the maximum.",
        [(_ADD, "gx += gy.sum(axis=(2, 3))[:, :, None] / (H * W)")],
    ),
    Mistake(
        4,
        "ignores-upstream",
        "You put a 1 where the maximum was. That is the derivative of max alone; the chain rule\n"
        "multiplies it by gy.",
        [(_ADD, "np.add.at(gx, (n, c, argmax), 1)")],
    ),
    Mistake(
        4,
        "first-sample-alone",
        "All gradients end up in sample 0, or in channel 0: the index lacks the sample, or the\n"
        "channel, that each gy belongs to.",
        [(_ADD, "np.add.at(gx, (0, c, argmax), gy)")],
        [[(_ADD, f"np.add.at(gx, ({index}, argmax), gy)")] for index in ("n, 0", "0, 0")],
    ),
    Mistake(
        4,
        "height-for-width-on-the-way-back",
        "A row has W pixels: number k is row k // W, column k % W. You divide by H.",
        [(_ADD, "np.add.at(gx, (n, c, argmax // H * W + argmax % H), gy)")],
        [[(_ADD, "np.add.at(gx.reshape(shape), (n, c, argmax // H, argmax % H), gy)")]],
    ),
    Mistake(
        4,
        "still-flat",
        "Your gradient still has its pixels in one axis: reshape it to (N, C, H, W).",
        [("return gx.reshape(shape)", "return gx")],
    ),
    Mistake(
        5,
        "no-pair",
        "forward gives back a pair: the output, and what backward needs.",
        [
            (
                "return pool(x, self.kernel, self.stride), saved",
                "return pool(x, self.kernel, self.stride)",
            )
        ],
    ),
    Mistake(
        5,
        "no-tuple",
        "backward gives back a tuple, one gradient for each input; here (gx,).",
        [(_GIVEN, "return backward(gy, argmax, shape)")],
    ),
    Mistake(
        5,
        "stride-as-kernel",
        "The op pools with the stride in the place of the kernel.",
        [
            (
                "return pool(x, self.kernel, self.stride), saved",
                "return pool(x, self.stride, self.stride), saved",
            )
        ],
    ),
    Mistake(
        5,
        "shape-of-output",
        "You save the shape of the output; the gradient has that of the input.",
        [
            (
                _SAVED,
                "y = pool(x, self.kernel, self.stride)\n"
                "        saved = positions(x, self.kernel, self.stride), y.shape",
            )
        ],
    ),
]
