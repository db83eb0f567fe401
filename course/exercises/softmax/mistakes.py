"""What goes wrong in exercise 6; of two that behave alike the first one is named."""

from tinygraph_course.content.exercise import Mistake
from tinygraph_course.exercises.softmax.mistakes_in_training import IN_TRAINING

_MAX = "z.max(axis=1, keepdims=True)"
_SHIFT = f"shifted = z - {_MAX}"
_SUM = "np.exp(shifted).sum(axis=1, keepdims=True)"
_LOG_P = f"return shifted - np.log({_SUM})"
_PICKED = "[np.arange(len(z)), labels]"
_LOSS = f"return -log_softmax(z){_PICKED}.mean()"
_P = "p = np.exp(log_softmax(z))"
_LESS = f"p{_PICKED} -= 1"
_MEAN = "return p / len(z)"
_FORWARD = "return np.asarray(cross_entropy(z, labels)), (z, labels)"
_BACKWARD = "return gradient(z, labels) * gy, None"


def _log_of(p: str) -> tuple[str, str]:
    """An edit: the logarithm of probabilities, which are computed first."""
    return _LOG_P, f"p = np.exp(shifted) / {_SUM}\n    return {p}"


MISTAKES = [
    Mistake(
        1,
        "no-shift",
        "exp(1000) is inf, and the sum of exp(-1000) is 0, of which log is -inf: your numbers\n"
        "are lost before log is taken. Take the maximum of each row off first.",
        [(_SHIFT, "shifted = z")],
        [
            [
                (_SHIFT, "shifted = z"),
                _log_of("np.log(p)"),
            ]
        ],
    ),
    Mistake(
        1,
        "shift-over-the-batch",
        "You take one maximum off the whole batch. A sample with smaller logits underflows: its\n"
        "exponentials are all 0. Each row has a maximum of its own.",
        [(_SHIFT, "shifted = z - z.max()")],
        [[(_SHIFT, "shifted = z - z.max()"), _log_of("np.log(p)")]],
    ),
    Mistake(
        1,
        "shift-down-the-columns",
        "You take the maximum of each column off. What is taken off has to be one number for a\n"
        "sample: axis=1, or its probabilities change.",
        [(_SHIFT, "shifted = z - z.max(axis=0)")],
        [[(_SHIFT, "shifted = z - z.max(axis=0)"), _log_of("np.log(p)")]],
    ),
    Mistake(
        1,
        "sum-over-samples",
        "Your sums go over samples: probabilities of one sample add up to 1, so the sum is over\n"
        "the classes, axis=1.",
        [(_SUM, _SUM.replace("1", "0"))],
        [
            [(_SUM, "np.exp(shifted).sum()")],
            [(_MAX, _MAX.replace("1", "0")), (_SUM, _SUM.replace("1", "0"))],
            [(_MAX, "z.max()"), (_SUM, "np.exp(shifted).sum()")],
        ],
    ),
    Mistake(
        1,
        "axes-lost",
        "Your maxima or sums have the shape (N,), and numpy lays (N,) along the classes. With\n"
        "keepdims=True they are (N, 1), one for each row.",
        [(_SUM, "np.exp(shifted).sum(axis=1)")],
        [
            [(_MAX, "z.max(axis=1)")],
            [(_MAX, "z.max(axis=1)"), (_SUM, "np.exp(shifted).sum(axis=1)")],
        ],
    ),
    Mistake(
        1,
        "log-of-rounded-zero",
        "You take the log of probabilities. One that is far below the others has been rounded to\n"
        "0, and log(0) is -inf: log(p) is shifted - log(sum), no p is needed.",
        [_log_of("np.log(p)")],
    ),
    Mistake(
        1,
        "something-added",
        "You add something to p, or cut it off below, so that log(0) does not come up. Then -1000\n"
        "comes out as -28, or so. log(p) is shifted - log(sum): no p is needed.",
        [_log_of("np.log(p + 1e-12)")],
        [
            *([_log_of(f"np.log(p + {e})")] for e in ("1e-15", "1e-10", "1e-9", "1e-8")),
            *([_log_of(f"np.log(np.maximum(p, {e}))")] for e in ("1e-12", "1e-15")),
            *([_log_of(f"np.log(p + {e})")] for e in ("1e-16", "1e-7", "1e-6", "1e-5")),
            *([_log_of(f"np.log(np.maximum(p, {e}))")] for e in ("1e-10", "1e-8", "1e-7")),
        ],
    ),
    Mistake(
        1,
        "probabilities",
        "Those are the probabilities; their logarithms are wanted.",
        [_log_of("p")],
    ),
    Mistake(
        1,
        "shift-inside-alone",
        "You take the maximum off inside of exp, and not off the z outside: your numbers are\n"
        "too large by the maximum of the row.",
        [(_LOG_P, _LOG_P.replace("return shifted", "return z"))],
    ),
    Mistake(
        1,
        "sum-without-log",
        "You subtract the sum of the exponentials; its logarithm is wanted.",
        [(_LOG_P, f"return shifted - {_SUM}")],
    ),
    Mistake(
        1,
        "negative",
        "Your sign is the other one: log p is 0 or below, since p is at most 1.",
        [(_LOG_P, f"return np.log({_SUM}) - shifted")],
    ),
    Mistake(
        2,
        "all-pairs",
        "[:, labels] gives an array N by N: of each sample the labels of all. An index of rows\n"
        "besides takes one number of each: [np.arange(N), labels].",
        [(_LOSS, "return -log_softmax(z)[:, labels].mean()")],
    ),
    Mistake(
        2,
        "not-over-n",
        "Your loss is a sum; it is a mean over the N samples, so that it does not grow with the\n"
        "batch.",
        [(_LOSS, f"return -log_softmax(z){_PICKED}.sum()")],
    ),
    Mistake(
        2,
        "over-classes-too",
        "You divide by N * C: the mean goes over the zeros of a one-hot array as well. There are\n"
        "N samples.",
        [(_LOSS, f"return -log_softmax(z){_PICKED}.sum() / z.size")],
        [[(_LOSS, f"return -log_softmax(z){_PICKED}.sum() / z.shape[1]")]],
    ),
    Mistake(
        2,
        "sign",
        "Your loss is 0 or below: the minus is missing. log p is negative, and the better the\n"
        "network, the smaller its loss.",
        [(_LOSS, _LOSS.replace("-", ""))],
    ),
    Mistake(
        2,
        "logits-for-log-p",
        "You pick the logits themselves: log_softmax of them comes first.",
        [(_LOSS, f"return -z{_PICKED}.mean()")],
    ),
    Mistake(
        2,
        "probabilities-in-the-loss",
        "You take the mean of the probabilities; -log of each of them is wanted.",
        [(_LOSS, f"return -np.exp(log_softmax(z)){_PICKED}.mean()")],
        [[(_LOSS, f"return (1 - np.exp(log_softmax(z)){_PICKED}).mean()")]],
    ),
    Mistake(
        2,
        "log-of-the-mean",
        "You take the mean of the probabilities first, and its logarithm then. The loss is the\n"
        "mean of the logarithms.",
        [(_LOSS, f"return -np.log(np.exp(log_softmax(z)){_PICKED}.mean())")],
    ),
    Mistake(
        2,
        "largest-for-right",
        "You take the class with the largest probability, whatever the label says.",
        [(_LOSS, "return -log_softmax(z).max(axis=1).mean()")],
    ),
    Mistake(
        2,
        "of-each-sample",
        "Those are the losses of the samples; one number is wanted, their mean.",
        [(_LOSS, f"return -log_softmax(z){_PICKED}")],
    ),
    Mistake(
        2,
        "all-classes",
        "You sum -log p over all classes. The label alone counts: it stands in the loss by\n"
        "choosing which p.",
        [(_LOSS, "return -log_softmax(z).sum() / len(z)")],
        [[(_LOSS, "return -log_softmax(z).mean()")]],
    ),
    Mistake(
        2,
        "entropy",
        "You sum -p * log p: how unsure the network is, and no label has a part in it. The loss\n"
        "is -log p of the right class.",
        [(_LOSS, "return -(np.exp(log_softmax(z)) * log_softmax(z)).sum() / len(z)")],
    ),
    Mistake(
        3,
        "gradient-not-over-n",
        "The loss is a mean over the N samples, so its gradient is divided by N, too.",
        [(_MEAN, "return p")],
    ),
    Mistake(
        3,
        "gradient-over-classes-too",
        "You divide by N * C, or by C. The mean of the loss is over the N samples.",
        [(_MEAN, "return p / p.size")],
        [[(_MEAN, "return p / p.shape[1]")]],
    ),
    Mistake(
        3,
        "onehot-missing",
        "Those are the probabilities, over N: the 1 of the right class is not taken off.",
        [(f"{_LESS}\n    ", "")],
    ),
    Mistake(
        3,
        "onehot-for-all",
        "p[:, labels] -= 1 takes 1 off in every row at the labels of all samples. Each row has\n"
        "one label: p[np.arange(N), labels].",
        [(_LESS, "p[:, labels] -= 1")],
    ),
    Mistake(
        3,
        "uphill",
        "Your signs are the other ones: a larger logit of the right class makes the loss\n"
        "smaller, so that its gradient is negative.",
        [(_MEAN, "return -p / len(z)")],
    ),
    Mistake(
        3,
        "log-p-for-p",
        "You take 1 off log p; it is p - onehot.",
        [(_P, "p = log_softmax(z)")],
    ),
    Mistake(
        3,
        "right-class-alone",
        "Your gradient is 0 but at the label. The other logits have one, too: they make the sum\n"
        "larger, and their gradient is p.",
        [(_LESS, "p = np.where(np.arange(z.shape[1]) == labels[:, None], p - 1, 0 * p)")],
    ),
    Mistake(
        3,
        "derivative-twice",
        "You multiply by p * (1 - p), as for a squared error behind a sigmoid. Here the\n"
        "derivative of softmax is in p - onehot already.",
        [(_MEAN, "return p * np.exp(log_softmax(z)) * (1 - np.exp(log_softmax(z))) / len(z)")],
    ),
    Mistake(
        3,
        "overflow-in-the-gradient",
        "exp(1000) is inf, and inf / inf is nan: you compute p without step 1. It is exp of\n"
        "log_softmax.",
        [(_P, "p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)")],
    ),
    Mistake(
        4,
        "upstream-ignored",
        "backward ignores gy: what comes after the loss, such as a factor, has no effect.",
        [(_BACKWARD, "return gradient(z, labels), None")],
    ),
    Mistake(
        4,
        "no-pair",
        "forward gives back a pair: the output, and what backward needs.",
        [(_FORWARD, "return np.asarray(cross_entropy(z, labels))")],
    ),
    Mistake(
        4,
        "gradient-alone",
        "backward gives back a tuple with an entry for each input. z has a gradient; the labels\n"
        "are whole numbers and have none: None.",
        [(_BACKWARD, "return (gradient(z, labels) * gy,)")],
    ),
    Mistake(
        4,
        "no-tuple",
        "backward gives back an array, and its rows are taken for gradients. It is a tuple: the\n"
        "gradient of z, and None.",
        [(_BACKWARD, "return gradient(z, labels) * gy")],
    ),
    *IN_TRAINING,
]
