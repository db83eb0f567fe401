"""What goes wrong in exercise 14; of two that behave alike the first one is named."""

from tinygraph_course.content.exercise import Mistake
from tinygraph_course.exercises.train.mistakes_in_optimizers import IN_OPTIMIZERS

_BATCH = "mean, var = x.mean(axis=0), x.var(axis=0)"
_CHOICE = "if self.running is None:\n            mean"
_S = "s = np.sqrt(var + self.eps)"
_Y = "return w * z + b, (z, w, s)"
_GX = "gx = (gz - gz.mean(axis=0) - z * (gz * z).mean(axis=0)) / s"
_GZ = "gz = gy * w\n"
_WAY = "gx = gz / s\n        if self.running is None:"
_GW = "(gy * z).sum(axis=0)"
_GB = "gy.sum(axis=0)\n"
_GIVEN = "return gx, gw, gb"

_MEAN = "mean = (1 - momentum) * mean + momentum * batch.mean(axis=0)"
_VAR = "var = (1 - momentum) * var + momentum * batch.var(axis=0, ddof=1)"
_PAIR = "return mean, var"

_FACTOR = "factor = (uniform(x.shape) >= p) / (1 - p)"
_BACK = "return gy * factor"
_BOTH = "return x * factor, backward"

MISTAKES = [
    Mistake(
        1,
        "eps-outside",
        "You add eps to the root; it is added to the variance, inside of the root.",
        [(_S, "s = np.sqrt(var) + self.eps")],
    ),
    Mistake(
        1,
        "eps-missing",
        "eps is missing: a channel that is constant has the variance 0, and is divided by it.",
        [(_S, "s = np.sqrt(var)")],
    ),
    Mistake(
        1,
        "divided-by-the-variance",
        "You divide by the variance; the deviation is its root.",
        [(_S, "s = var + self.eps")],
    ),
    Mistake(
        1,
        "unbiased-in-the-batch",
        "Your variance is divided by N - 1. The batch itself is normalized with the mean over N;\n"
        "the running variance alone is the unbiased one.",
        [(_BATCH, _BATCH.replace("var(axis=0)", "var(axis=0, ddof=1)"))],
    ),
    Mistake(
        1,
        "over-channels",
        "Your mean and variance go over the channels of each sample: that is layer norm. Here\n"
        "each channel has one of its own, over the samples: axis=0.",
        [
            (
                _BATCH,
                "mean, var = x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True)",
            )
        ],
    ),
    Mistake(
        1,
        "over-everything",
        "You take one mean and one variance of all numbers. Each channel has its own: axis=0.",
        [(_BATCH, "mean, var = x.mean(), x.var()")],
        [
            [
                (_BATCH, "mean, var = x.mean(), x.var()"),
                (_GX, _GX.replace("axis=0", "")),
            ]
        ],
    ),
    Mistake(
        1,
        "batch-in-evaluation",
        "In evaluation you use the statistics of the batch too. Then a prediction depends on what\n"
        "else is in the batch; self.running has those that count.",
        [
            (_CHOICE, _CHOICE.replace("self.running is None", "True")),
            (_WAY, _WAY.replace("self.running is None", "True")),
        ],
        [[(_CHOICE, _CHOICE.replace("self.running is None", "True"))]],
    ),
    Mistake(
        1,
        "statistics-of-float64",
        "In evaluation your y is float64 where x is float32: np.array makes float64 of what is in\n"
        "running, if it is told nothing else. np.array(numbers, x.dtype) does not.",
        [("np.array(numbers, x.dtype)", "np.array(numbers)")],
    ),
    Mistake(
        1,
        "scale-and-shift-missing",
        "That is z. Its scale and shift are missing: y = w * z + b.",
        [(_Y, "return z, (z, w, s)")],
    ),
    Mistake(
        1,
        "variance-path-missing",
        "x acts through the variance as well: the term z * mean(gz * z) is missing. Under an\n"
        "upstream of ones it is 0, which is why nobody notices it there.",
        [(_GX, "gx = (gz - gz.mean(axis=0)) / s")],
    ),
    Mistake(
        1,
        "mean-path-missing",
        "x acts through the mean as well: the mean of gz is to be taken off.",
        [(_GX, "gx = (gz - z * (gz * z).mean(axis=0)) / s")],
    ),
    Mistake(
        1,
        "statistics-as-constants",
        "You take mean and variance for constants. In training they are computed of x, and x\n"
        "acts through them; in evaluation alone they are constants.",
        [(_GX, "gx = gz / s")],
    ),
    Mistake(
        1,
        "evaluated-as-trained",
        "In evaluation the statistics are constants, and the gradient of x is gz / s; yours goes\n"
        "through a mean and a variance there.",
        [(_WAY, _WAY.replace("self.running is None", "True"))],
        [
            [
                (_WAY, _WAY.replace("self.running is None", "True")),
                (_GX, _GX.replace("- z *", "- (z - z.mean(axis=0)) *")),
            ]
        ],
    ),
    Mistake(
        1,
        "sums-for-means",
        "You take sums off where means belong: each of N samples has 1/N of the mean.",
        [(_GX, "gx = (gz - gz.sum(axis=0) - z * (gz * z).sum(axis=0)) / s")],
    ),
    Mistake(
        1,
        "gradient-without-s",
        "The division by s is missing on the way back: z = (x - mean) / s.",
        [(_GX, "gx = gz - gz.mean(axis=0) - z * (gz * z).mean(axis=0)"), ("gz / s", "gz")],
    ),
    Mistake(
        1,
        "gradient-without-w",
        "The gradient of x lacks w: from y = w * z + b it is gy * w that reaches z.",
        [(_GZ, "gz = gy\n")],
    ),
    Mistake(
        1,
        "gw-without-z",
        "Your gradient of w is that of b: w is multiplied by z, so gy is, too.",
        [(_GW, _GB.strip())],
    ),
    Mistake(
        1,
        "means-for-sums",
        "Your gradients of w and b are means. All samples use the same w and b, and gradients of\n"
        "all uses are added up.",
        [(_GW, "(gy * z).mean(axis=0)"), (_GB, "gy.mean(axis=0)\n")],
    ),
    Mistake(
        1,
        "gradients-exchanged",
        "The gradients of w and b stand in each other's place: they have the order of the inputs.",
        [(_GIVEN, "return gx, gb, gw")],
    ),
    Mistake(
        2,
        "momentum-weighs-the-old",
        "Your momentum weighs the old statistics. Here it is the weight of the new batch, and\n"
        "1 - momentum that of the old ones.",
        [
            (_MEAN, "mean = momentum * mean + (1 - momentum) * batch.mean(axis=0)"),
            (_VAR, "var = momentum * var + (1 - momentum) * batch.var(axis=0, ddof=1)"),
        ],
    ),
    Mistake(
        2,
        "biased",
        "Your variance is the mean over N. The running variance is the unbiased one, over N - 1:\n"
        "ddof=1.",
        [(_VAR, _VAR.replace(", ddof=1", ""))],
    ),
    Mistake(
        2,
        "deviation",
        "That is the running deviation; the variance is its square.",
        [(_VAR, _VAR.replace("batch.var", "batch.std"))],
    ),
    Mistake(
        2,
        "new-alone",
        "You return the statistics of the batch; the old ones weigh 1 - momentum.",
        [(_MEAN, "mean = batch.mean(axis=0)"), (_VAR, "var = batch.var(axis=0, ddof=1)")],
    ),
    Mistake(
        2,
        "old-in-full",
        "The old statistics stay in full, and the new ones are added: both weights together are\n"
        "1, so that a mean stays a mean.",
        [
            (_MEAN, "mean = mean + momentum * batch.mean(axis=0)"),
            (_VAR, "var = var + momentum * batch.var(axis=0, ddof=1)"),
        ],
    ),
    Mistake(
        2,
        "statistics-over-everything",
        "You take one mean or one variance of the whole batch. Each channel has its own: axis=0.",
        [(_MEAN, _MEAN.replace("axis=0", "")), (_VAR, _VAR.replace("axis=0, ", ""))],
        [
            [(_MEAN, _MEAN.replace("axis=0", ""))],
            [(_VAR, _VAR.replace("axis=0, ", ""))],
        ],
    ),
    Mistake(
        2,
        "pair-exchanged",
        "Your pair is the wrong way round: the mean comes first.",
        [(_PAIR, "return var, mean")],
    ),
    Mistake(
        3,
        "not-made-larger",
        "The factor 1 / (1 - p) is missing. Without it the numbers of training are smaller than\n"
        "those of evaluation, where nothing is dropped.",
        [(_FACTOR, "factor = (uniform(x.shape) >= p) * 1.0")],
        [[(_BOTH, "return x * (factor > 0), backward")]],
    ),
    Mistake(
        3,
        "divided-by-p",
        "You divide by p, the share that is dropped. 1 - p is what stays, and what stays is made\n"
        "larger by 1 / (1 - p).",
        [(_FACTOR, "factor = (uniform(x.shape) >= p) / p")],
    ),
    Mistake(
        3,
        "made-smaller",
        "You multiply what stays by 1 - p; divide by it.",
        [(_FACTOR, "factor = (uniform(x.shape) >= p) * (1 - p)")],
    ),
    Mistake(
        3,
        "others-dropped",
        "You keep where r < p: then p is the probability to stay. It is that to be dropped.",
        [(_FACTOR, _FACTOR.replace(">=", "<"))],
    ),
    Mistake(
        3,
        "dropped-at-p",
        "You drop where r = p, too. r may be 0 and is never 1: with p = 0 nothing is dropped if\n"
        "r >= p stays.",
        [(_FACTOR, _FACTOR.replace(">=", ">"))],
    ),
    Mistake(
        3,
        "new-mask-on-the-way-back",
        "You draw again on the way back: gradients go to elements that were dropped. Both ways\n"
        "have the same mask, so draw once.",
        [(_BACK, "return gy * (uniform(x.shape) >= p) / (1 - p)")],
    ),
    Mistake(
        3,
        "gradient-not-masked",
        "Your gradient is not masked: what was dropped has no effect on y, so its gradient is 0.",
        [(_BACK, "return gy / (1 - p)")],
        [[(_BACK, "return gy")]],
    ),
    Mistake(
        3,
        "gradient-not-made-larger",
        "Your gradient lacks the factor 1 / (1 - p), by which y was made larger.",
        [(_BACK, "return gy * (factor > 0)")],
    ),
    Mistake(
        3,
        "mask-of-y",
        "You take what is 0 in y for dropped. An x of 0 may have stayed, and its gradient is not\n"
        "0: keep the mask itself.",
        [(_BACK, "return gy * (x * factor != 0) / (1 - p)")],
    ),
    Mistake(
        3,
        "gradient-times-x",
        "Your gradient is multiplied by x, or by y. y = x * factor: its derivative is the factor.",
        [(_BACK, "return gy * x * factor")],
    ),
    Mistake(
        3,
        "mask-of-float64",
        "Your numbers are right, and float64 where x is float32: a mask divided by 1 - p is, and\n"
        "np.where(mask, 1 / (1 - p), 0) as well. astype(x.dtype) makes it that of x.",
        [("    factor = factor.astype(x.dtype)\n", "")],
    ),
    Mistake(
        3,
        "output-alone",
        "A pair is wanted: y, and the function for the way back.",
        [(_BOTH, "return x * factor")],
    ),
    *IN_OPTIMIZERS,
]
