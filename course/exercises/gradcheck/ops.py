"""The layers of harness.py, by number: what they compute, and which of them have a wrong backward.

All are layers of x (N, I), w (O, I), b (O,).  This is known on the side that judges alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tinygraph.engine.spec import Array


class Layer(NamedTuple):
    """What a layer computes, and what its backward does wrong; nothing where it is right."""

    formula: str
    wrong: str = ""
    hidden: str = ""

    def said(self) -> str:
        """The words of a learner's screen."""
        lines = [f"  forward:  {self.formula}"]
        lines += [f"  backward: wrong, {self.wrong}" if self.wrong else "  backward: right"]
        return "\n".join(
            [*lines, *([f"            hidden where {self.hidden}"] * bool(self.hidden))]
        )


_LINEAR, _MEAN, _TANH = "y = x @ w.T + b", "y = x @ w.T / I + b", "y = tanh(x @ w.T + b)"
_RELU, _ABSOLUTE = "y = relu(x) @ w.T + b", "y = x @ abs(w).T + b"
_SOFTMAX, _LARGEST = "y = softmax of x @ w.T + b", "y[n, o] = largest x[n, i] * w[o, i] + b[o]"

LAYERS = [
    Layer(_SOFTMAX),
    Layer(_LINEAR, "it takes ones for gy", "gy is of ones"),
    Layer(_TANH, "it writes into gy", "nobody looks at gy afterwards"),
    Layer(_LINEAR, "gb is gy of sample 0, not the sum over samples", "N = 1"),
    Layer("y = z - mean of z over samples, z = x @ w.T + b"),
    Layer(_MEAN, "it divides by O, not by I", "I = O"),
    Layer(_RELU),
    Layer(_RELU, "gx passes where x is negative", "all x are positive"),
    Layer(_ABSOLUTE),
    Layer(_LINEAR),
    Layer(_LARGEST, "all i get the gradient, not the largest alone", "I = 1"),
    Layer(_TANH, "it takes 1 - z * z for 1 - y * y, z = x @ w.T + b"),
    Layer("y[n, o] = sum of (x[n, i] - w[o, i]) ** 2 / 2 + b[o]"),
    Layer(_RELU, "a hundredth of gx passes where x is negative", "all x are positive"),
    Layer(_LINEAR, "gb has the shape (1, O), its numbers are right", "shapes are not compared"),
    Layer("y = 1e8 * log of softmax of x @ w.T + b"),
    Layer(_ABSOLUTE, "gw is NaN where w is negative", "all w are positive"),
    Layer(_MEAN),
    Layer(_LINEAR, "gw is transposed, then reshaped to (O, I)", "I = 1 or O = 1"),
    Layer(_TANH),
    Layer(_SOFTMAX, "the sum over gy * y is missing", "nothing is"),
    Layer(_LARGEST),
    Layer("y = x @ w.T, and b added to sample 0"),  # its gb is a view of gy
]
RIGHT = [number for number, layer in enumerate(LAYERS) if not layer.wrong]
COALS = [number for number, layer in enumerate(LAYERS) if layer.wrong]
IN_PLACE = 2  # the coal whose numbers are right


def _near_zero(a: Array) -> bool:
    return bool((np.abs(a) < 1e-5).any())


def _tie(x: Array, w: Array) -> bool:
    """Whether the two largest products of an output are as good as equal."""
    products = np.sort(x[:, None] * w, axis=2)  # (N, O, I)
    return _near_zero(np.diff(products, axis=2)[:, :, -1:])


KINKS: dict[int, tuple[str, Callable[[Array, Array], bool]]] = {
    6: ("a number of x is 0", lambda x, w: _near_zero(x)),
    8: ("a number of w is 0", lambda x, w: _near_zero(w)),
    21: ("two of the products x[n, i] * w[o, i] are equal", _tie),
}
