"""A layer of plain recurrent cells (see recurrent.py).

    a = gi + gh            s = (h,)

    tanh   h' = tanh(a)            ga = gh' * (1 - h'**2)
    relu   h' = max(a, 0)          ga = gh' where h' != 0, else 0

Source: Elman, "Finding structure in time", Cognitive Science 14, 1990.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tinygraph.base import frozen, one_of
from tinygraph.engine import Array, Op, Operand, Tensor
from tinygraph.ops.recurrent.recurrent import Recurrent, recurrent


@frozen
class TanhLayer(Recurrent, Op):
    name: ClassVar[str] = "rnn_layer"
    gates: ClassVar[int] = 1
    kept: ClassVar[int] = 0

    def step(self, gi: Array, gh: Array, before: Array, after: Array, kept: Array) -> None:
        np.add(gi, gh, out=after[0])
        np.tanh(after[0], out=after[0])

    def step_back(
        self, kept: Array, before: Array, after: Array, g: Array, ggi: Array, ggh: Array
    ) -> None:
        np.multiply(g[0], 1 - after[0] * after[0], out=ggi)
        g[0] = 0


@frozen
class ReluLayer(TanhLayer):
    name: ClassVar[str] = "rnn_layer"

    def step(self, gi: Array, gh: Array, before: Array, after: Array, kept: Array) -> None:
        np.add(gi, gh, out=after[0])
        np.maximum(after[0], 0, out=after[0])  # NaN propagates
        after[0] += 0  # -0 becomes 0

    def step_back(
        self, kept: Array, before: Array, after: Array, g: Array, ggi: Array, ggh: Array
    ) -> None:
        np.multiply(g[0], after[0] != 0, out=ggi)
        g[0] = 0


LAYERS = {"tanh": TanhLayer, "relu": ReluLayer}


@recurrent
def rnn_layer(
    gi: Operand, s0: Operand, w: Operand, b: Operand | None = None, nonlinearity: str = "tanh"
) -> Tensor:
    """All steps of a layer of plain recurrent cells: what `nn.RNN` is made of.

    Parameters
    ----------
    gi : Tensor (T, N, H)
        ...
    s0 : Tensor (1, N, H)
        h before the first step.
    w : Tensor (H, H)
        ...
    b : Tensor (H,), optional
        ...
    nonlinearity : {"tanh", "relu"}

    Returns
    -------
    Tensor (1, T, N, H)
        h after each step.

    Raises
    ------
    ArgumentError
        `nonlinearity` is neither of the two.

    Examples
    --------
    >>> import tinygraph as tg
    >>> gi = tg.Tensor([[[1.0]], [[2.0]]])
    >>> tg.rnn_layer(gi, tg.zeros(1, 1, 1), tg.ones(1, 1), nonlinearity="relu").value.ravel()
    array([1., 3.], dtype=float32)
    """
    layer = LAYERS[one_of("rnn_layer", "nonlinearity", nonlinearity, LAYERS)]()
    return layer(gi, s0, w) if b is None else layer(gi, s0, w, b)
