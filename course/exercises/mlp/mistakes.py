"""What goes wrong in exercise 3; of two that behave alike the first one is named."""

from tinygraph_course.content.exercise import Edits, Mistake

_HIDDEN, _LAST = "sigmoid(x @ W1.T + b1)", "sigmoid(h @ W2.T + b2)"
_PAIR = "return h, o"
_D2, _D1 = "(o - y) * o * (1 - o)", "(d2 @ W2) * h * (1 - h)"
_GRADIENTS = "return d1.T @ x, d1.sum(axis=0), d2.T @ h, d2.sum(axis=0)"
_DELTAS = "d1, d2 = deltas(h, o, y, W2)"
_NEW = "return W1 - lr * gW1, b1 - lr * gb1, W2 - lr * gW2, b2 - lr * gb2"
_ALL = "gW1, gb1, gW2, gb2 = gradients(x, h, d1, d2)"


def _layers(hidden: str, last: str) -> tuple[Edits, list[Edits]]:
    """Both layers wrong, then either of them: the edits, and the further ways."""
    return [(_HIDDEN, hidden), (_LAST, last)], [[(_HIDDEN, hidden)], [(_LAST, last)]]


def _four(gW1: str, gb1: str, gW2: str, gb2: str) -> Edits:
    return [(_GRADIENTS, f"return {gW1}, {gb1}, {gW2}, {gb2}")]


MISTAKES = [
    Mistake(
        1,
        "weights-not-transposed",
        "You multiply by W as it lies, (out, in): its rows belong to the units. The sum of unit j\n"
        "takes row j: x @ W.T.",
        *_layers("sigmoid(x @ W1 + b1)", "sigmoid(h @ W2 + b2)"),
    ),
    Mistake(
        1,
        "no-bias",
        "A bias is missing: each unit adds its own to the weighted inputs.",
        *_layers("sigmoid(x @ W1.T)", "sigmoid(h @ W2.T)"),
    ),
    Mistake(
        1,
        "bias-outside",
        "A bias is added behind the sigmoid. It belongs to the sum, inside: it moves the place\n"
        "where the sigmoid rises.",
        *_layers("sigmoid(x @ W1.T) + b1", "sigmoid(h @ W2.T) + b2"),
    ),
    Mistake(
        1,
        "hidden-is-linear",
        "Your hidden layer has no sigmoid. Without a bend between them two layers are no more\n"
        "than one.",
        [(_HIDDEN, "x @ W1.T + b1")],
        [[(_HIDDEN, "x @ W1.T + b1"), (_LAST, "h @ W2.T + b2")]],
    ),
    Mistake(
        1,
        "output-is-linear",
        "Your output has no sigmoid: it is the sum itself. Here the outputs are sigmoids too.",
        [(_LAST, "h @ W2.T + b2")],
    ),
    Mistake(
        1,
        "sums-for-values",
        "In the place of h you give back the sums that the hidden units add up; what the second\n"
        "layer sees, and what is asked for, is their sigmoid.",
        [(_PAIR, "return x @ W1.T + b1, o")],
    ),
    Mistake(
        1,
        "inputs-at-the-output",
        "Your second layer gets x: it is to see h, what the hidden layer gives.",
        [(_LAST, "sigmoid(x @ W2.T + b2)")],
    ),
    Mistake(
        1,
        "another-bend",
        "You take another function than the sigmoid: tanh runs from -1 to 1 and ReLU has no\n"
        "bound. The delta rule below is made for s.",
        [(_HIDDEN, "np.tanh(x @ W1.T + b1)"), (_LAST, "np.tanh(h @ W2.T + b2)")],
        [
            [(_HIDDEN, "np.tanh(x @ W1.T + b1)")],
            [(_LAST, "np.tanh(h @ W2.T + b2)")],
            [(_HIDDEN, "np.maximum(x @ W1.T + b1, 0)")],
            [(_HIDDEN, "np.maximum(x @ W1.T + b1, 0)"), (_LAST, "h @ W2.T + b2")],
        ],
    ),
    Mistake(
        1,
        "softmax",
        "The outputs of a sample add up to 1: that is a softmax. Here each output is a sigmoid of\n"
        "its own sum.",
        [
            (
                _LAST,
                "np.exp(h @ W2.T + b2) / np.exp(h @ W2.T + b2).sum(axis=1, keepdims=True)",
            )
        ],
    ),
    Mistake(
        1,
        "outputs-first",
        "You give back (o, h). Asked for is (h, o), in the order of the layers.",
        [(_PAIR, "return o, h")],
    ),
    Mistake(
        1,
        "outputs-alone",
        "You give back o alone. The deltas need h too: the pair (h, o).",
        [(_PAIR, "return o")],
    ),
    Mistake(
        2,
        "slope-of-the-value",
        "You take the slope of s at h or at o: s(h) * (1 - s(h)). But h is s(z) already, so the\n"
        "slope at z is h * (1 - h).",
        [
            (_D2, "(o - y) * sigmoid(o) * (1 - sigmoid(o))"),
            (_D1, "(d2 @ W2) * sigmoid(h) * (1 - sigmoid(h))"),
        ],
        [
            [(_D1, "(d2 @ W2) * sigmoid(h) * (1 - sigmoid(h))")],
            [(_D2, "(o - y) * sigmoid(o) * (1 - sigmoid(o))")],
        ],
    ),
    Mistake(
        2,
        "no-slope-at-the-output",
        "d2 lacks o * (1 - o). The error o - y is the derivative of L by o. The sum lies behind\n"
        "the sigmoid, whose slope is one more factor.",
        [(_D2, "o - y")],
        [[(_D2, "o - y"), (_D1, "d2 @ W2")]],
    ),
    Mistake(
        2,
        "no-slope-below",
        "d1 lacks h * (1 - h): what comes back through W2 is the derivative of L by h. The sum\n"
        "lies behind the sigmoid, whose slope is one more factor.",
        [(_D1, "d2 @ W2")],
    ),
    Mistake(
        2,
        "half-a-slope",
        "The slope of the sigmoid is s * (1 - s): you have one of these two factors.",
        [(_D2, "(o - y) * o"), (_D1, "(d2 @ W2) * h")],
        [
            [(_D2, "(o - y) * o")],
            [(_D1, "(d2 @ W2) * h")],
            [(_D2, "(o - y) * (1 - o)"), (_D1, "(d2 @ W2) * (1 - h)")],
            [(_D2, "(o - y) * (1 - o)")],
            [(_D1, "(d2 @ W2) * (1 - h)")],
        ],
    ),
    Mistake(
        2,
        "slope-of-tanh",
        "1 - h * h is the slope of tanh. That of the sigmoid is h * (1 - h).",
        [(_D2, "(o - y) * (1 - o * o)"), (_D1, "(d2 @ W2) * (1 - h * h)")],
        [[(_D2, "(o - y) * (1 - o * o)")], [(_D1, "(d2 @ W2) * (1 - h * h)")]],
    ),
    Mistake(
        2,
        "slope-of-the-other-layer",
        "d1 has the slope o * (1 - o), which d2 has already. A hidden unit has its own slope,\n"
        "h * (1 - h).",
        [(_D1, "(d2 @ W2) * o * (1 - o)")],
    ),
    Mistake(
        2,
        "transposed",
        "d2 @ W2.T exchanges hidden units and outputs. On the way back W2 (O, H) stands as it\n"
        "lies: (N, O) by (O, H) is (N, H).",
        [(_D1, "(d2 @ W2.T) * h * (1 - h)")],
    ),
    Mistake(
        2,
        "error-passed-down",
        "Through W2 goes your error o - y. What is passed down is d2, with the slope of the\n"
        "output in it.",
        [(_D1, "((o - y) @ W2) * h * (1 - h)")],
    ),
    Mistake(
        2,
        "not-through-the-weights",
        "d2 is used again below as it is. A hidden unit answers for each output by the weight\n"
        "between them: pass d2 through W2.",
        [(_D1, "d2 * h * (1 - h)")],
        [[(_D1, "d2.sum(axis=1, keepdims=True) * h * (1 - h)")], [(_D1, "d2")]],
    ),
    Mistake(
        2,
        "sign",
        "Your deltas have the other sign: y - o points to where L falls. dL / do is o - y, and\n"
        "step 4 subtracts.",
        [(_D2, "(y - o) * o * (1 - o)")],
    ),
    Mistake(
        2,
        "factor-of-2",
        "Your deltas are twice as large: half of a square has the derivative o - y, the half\n"
        "cancels the 2.",
        [(_D2, "2 * (o - y) * o * (1 - o)")],
    ),
    Mistake(
        2,
        "mean-for-sum",
        "You divide by the number of samples, or of outputs. L is a sum over all of them; each\n"
        "has its delta whole.",
        [(_D2, "(o - y) * o * (1 - o) / len(y)")],
        [[(_D2, "(o - y) * o * (1 - o) / y.size")], [(_D2, "(o - y) * o * (1 - o) / y.shape[1]")]],
    ),
    Mistake(
        2,
        "loss-for-its-slope",
        "(o - y)**2 is in your delta: that is the loss. Its derivative by o is o - y.",
        [(_D2, "(o - y) ** 2 / 2 * o * (1 - o)")],
        [[(_D2, "(o - y) ** 2 * o * (1 - o)")]],
    ),
    Mistake(
        2,
        "outputs-first-on-the-way-back",
        "You give back (d2, d1). Asked for is (d1, d2), in the order of the layers.",
        [("return d1, d2", "return d2, d1")],
    ),
    Mistake(
        3,
        "bias-not-summed",
        "Your gradient of a bias has a row for each sample. All of them use the same bias: add\n"
        "the rows up.",
        _four("d1.T @ x", "d1", "d2.T @ h", "d2"),
    ),
    Mistake(
        3,
        "bias-with-two-axes",
        "Your gradient of a bias is (1, H) or (1, O). It has the shape of the bias; keepdims\n"
        "keeps an axis that b does not have.",
        _four("d1.T @ x", "d1.sum(axis=0, keepdims=True)", "d2.T @ h", "d2.sum(0, keepdims=True)"),
    ),
    Mistake(
        3,
        "bias-over-units",
        "You add up the deltas of the units of a sample. A bias belongs to a unit: its gradient\n"
        "is the sum over the samples, axis 0.",
        _four("d1.T @ x", "d1.sum(axis=1)", "d2.T @ h", "d2.sum(axis=1)"),
    ),
    Mistake(
        3,
        "bias-of-all-units",
        "Your gradient of a bias is one number for all units: sum() without an axis.",
        _four("d1.T @ x", "d1.sum()", "d2.T @ h", "d2.sum()"),
    ),
    Mistake(
        3,
        "mean-for-sum-of-samples",
        "You take a mean over the samples: a gradient is N times too small. L is a sum, and so is\n"
        "its gradient.",
        _four("d1.T @ x / len(x)", "d1.mean(axis=0)", "d2.T @ h / len(x)", "d2.mean(axis=0)"),
        [
            _four("d1.T @ x", "d1.mean(axis=0)", "d2.T @ h", "d2.mean(axis=0)"),
            _four("d1.T @ x / len(x)", "d1.sum(axis=0)", "d2.T @ h / len(x)", "d2.sum(axis=0)"),
        ],
    ),
    Mistake(
        3,
        "transposed-gradient",
        "Your gradient of the weights is (in, out). It has the shape of W, (out, in): one row for\n"
        "each unit, as its weights lie.",
        _four("x.T @ d1", "d1.sum(axis=0)", "h.T @ d2", "d2.sum(axis=0)"),
    ),
    Mistake(
        3,
        "one-sample",
        "Your gradient comes from one sample, the first or the last. L has all of them: their\n"
        "products are added up.",
        _four("np.outer(d1[0], x[0])", "d1[0]", "np.outer(d2[0], h[0])", "d2[0]"),
        [
            _four("np.outer(d1[-1], x[-1])", "d1[-1]", "np.outer(d2[-1], h[-1])", "d2[-1]"),
            _four("np.outer(d1[-1], x[-1])", "d1.sum(0)", "np.outer(d2[-1], h[-1])", "d2.sum(0)"),
        ],
    ),
    Mistake(
        3,
        "sums-multiplied",
        "You add up deltas, and values, and multiply the sums. Each delta meets the value of its\n"
        "own sample: multiply first, then add up.",
        _four(
            "np.outer(d1.sum(0), x.sum(0))",
            "d1.sum(0)",
            "np.outer(d2.sum(0), h.sum(0))",
            "d2.sum(0)",
        ),
    ),
    Mistake(
        3,
        "values-above",
        "In the gradient of W1 stands h, the value above these weights. The delta is above a\n"
        "weight, the value below it: here x.",
        _four("d1.T @ h", "d1.sum(axis=0)", "d2.T @ h", "d2.sum(axis=0)"),
    ),
    Mistake(
        3,
        "slope-once-more",
        "You multiply by a slope h * (1 - h) that is in d1 already.",
        _four("(d1 * h * (1 - h)).T @ x", "d1.sum(axis=0)", "d2.T @ h", "d2.sum(axis=0)"),
        [_four("(d1 * h * (1 - h)).T @ x", "(d1 * h * (1 - h)).sum(0)", "d2.T @ h", "d2.sum(0)")],
    ),
    Mistake(
        3,
        "downhill",
        "Your gradients have the other sign. A gradient points uphill; step 4 goes against it.",
        _four("-d1.T @ x", "-d1.sum(axis=0)", "-d2.T @ h", "-d2.sum(axis=0)"),
    ),
    Mistake(
        3,
        "another-order",
        "Your four gradients are in another order. Asked for is that of the parameters: W1, b1,\n"
        "W2, b2.",
        _four("d2.T @ h", "d2.sum(axis=0)", "d1.T @ x", "d1.sum(axis=0)"),
        [_four("d1.T @ x", "d2.T @ h", "d1.sum(axis=0)", "d2.sum(axis=0)")],
    ),
    Mistake(
        4,
        "climbs",
        "You add the gradient: the loss climbs. Downhill is against it, W - lr * gW.",
        [(_NEW, "return W1 + lr * gW1, b1 + lr * gb1, W2 + lr * gW2, b2 + lr * gb2")],
    ),
    Mistake(
        4,
        "last-layer-first",
        "W2 is changed before d1 is computed, so that d1 goes through the new weights. All\n"
        "gradients come from the old ones; change them last.",
        [
            (
                _DELTAS,
                "d2 = deltas(h, o, y, W2)[1]\n"
                "    d1 = deltas(h, o, y, W2 - lr * gradients(x, h, h, d2)[2])[0]",
            )
        ],
        [
            [
                (
                    _ALL,
                    "gW2, gb2 = gradients(x, h, d1, d2)[2:]\n"
                    "    h, o = forward(x, W1, b1, W2 - lr * gW2, b2 - lr * gb2)\n"
                    "    d1, d2 = deltas(h, o, y, W2 - lr * gW2)\n"
                    "    gW1, gb1 = gradients(x, h, d1, d2)[:2]",
                )
            ]
        ],
    ),
    Mistake(
        4,
        "biases-stay",
        "The biases stay as they are. They are parameters too, and have their gradients.",
        [(_NEW, "return W1 - lr * gW1, b1, W2 - lr * gW2, b2")],
    ),
    Mistake(
        4,
        "one-layer-stays",
        "One of the layers does not learn: its weights and biases are the old ones.",
        [(_NEW, "return W1, b1, W2 - lr * gW2, b2 - lr * gb2")],
        [[(_NEW, "return W1 - lr * gW1, b1 - lr * gb1, W2, b2")]],
    ),
    Mistake(
        4,
        "no-rate",
        "Your step is the gradient itself, for all parameters or for the biases: lr is missing.",
        [(_NEW, "return W1 - gW1, b1 - gb1, W2 - gW2, b2 - gb2")],
        [[(_NEW, "return W1 - lr * gW1, b1 - gb1, W2 - lr * gW2, b2 - gb2")]],
    ),
    Mistake(
        4,
        "mean-step",
        "Your step is N times too small: it is divided by the number of samples. L is their sum.",
        [(_ALL, f"{_ALL}\n    lr = lr / len(x)")],
    ),
    Mistake(
        4,
        "sample-by-sample",
        "You step after each sample, and the next one meets new weights. Here one step takes the\n"
        "gradient of all samples.",
        [
            (
                _DELTAS,
                "for n in range(len(x) - 1):\n"
                "        W1, b1, W2, b2 = step(x[n : n + 1], y[n : n + 1], W1, b1, W2, b2, lr)\n"
                "    x, y = x[-1:], y[-1:]\n"
                "    h, o = forward(x, W1, b1, W2, b2)\n"
                "    d1, d2 = deltas(h, o, y, W2)",
            )
        ],
    ),
    Mistake(
        4,
        "first-sample-alone",
        "Your step knows the first sample alone.",
        [(_DELTAS, f"x, y, h, o = x[:1], y[:1], h[:1], o[:1]\n    {_DELTAS}")],
    ),
    Mistake(
        4,
        "change-alone",
        "You give back the gradients, or the changes. Asked for are the parameters after the\n"
        "step.",
        [(_NEW, "return lr * gW1, lr * gb1, lr * gW2, lr * gb2")],
        [
            [(_NEW, "return gW1, gb1, gW2, gb2")],
            [(_NEW, "return -lr * gW1, -lr * gb1, -lr * gW2, -lr * gb2")],
        ],
    ),
    Mistake(
        4,
        "layers-exchanged",
        "You give back W2 and b2 first. Asked for is W1, b1, W2, b2.",
        [(_NEW, "return W2 - lr * gW2, b2 - lr * gb2, W1 - lr * gW1, b1 - lr * gb1")],
    ),
]
