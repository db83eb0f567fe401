"""A layer of long short-term memory (see recurrent.py).

    a = gi + gh, in four gates of H numbers       s = (h, c)
    i, f, o = sigmoid(a_1), sigmoid(a_2), sigmoid(a_4)          g = tanh(a_3)

    c' = f * c + i * g                            h' = o * tanh(c')

    q   = gc' + gh' * o * (1 - tanh(c')**2)       gc = q * f
    ga_1 = q * g * i * (1 - i)                    ga_2 = q * c * f * (1 - f)
    ga_3 = q * i * (1 - g**2)                     ga_4 = gh' * tanh(c') * o * (1 - o)

Source: Hochreiter, Schmidhuber, "Long short-term memory", Neural Computation 9, 1997; with the
forget gate of Gers, Schmidhuber, Cummins, "Learning to forget", Neural Computation 12, 2000.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tinygraph.base import frozen
from tinygraph.engine import Array, Op, Operand, Tensor
from tinygraph.ops.recurrent.recurrent import Recurrent, recurrent, sigmoid


@frozen
class LstmLayer(Recurrent, Op):
    gates: ClassVar[int] = 4
    states: ClassVar[int] = 2
    kept: ClassVar[int] = 4

    def step(self, gi: Array, gh: Array, before: Array, after: Array, kept: Array) -> None:
        np.add(gi, gh, out=kept)
        i, f, g, o = np.split(kept, 4, axis=1)
        for gate in (i, f, o):
            sigmoid(gate)
        np.tanh(g, out=g)
        h, c = after
        np.multiply(f, before[1], out=c)
        c += i * g
        np.tanh(c, out=h)
        h *= o

    def step_back(
        self, kept: Array, before: Array, after: Array, g: Array, ggi: Array, ggh: Array
    ) -> None:
        i, f, new, o = np.split(kept, 4, axis=1)
        gi, gf, gn, go = np.split(ggi, 4, axis=1)
        (gh, gc), tanh_c = g, np.tanh(after[1])
        np.multiply(gh * tanh_c, o * (1 - o), out=go)
        gc += gh * o * (1 - tanh_c * tanh_c)
        np.multiply(gc * new, i * (1 - i), out=gi)
        np.multiply(gc * before[1], f * (1 - f), out=gf)
        np.multiply(gc * i, 1 - new * new, out=gn)
        gc *= f
        gh[...] = 0  # h is used by the gates alone


@recurrent
def lstm_layer(gi: Operand, s0: Operand, w: Operand, b: Operand | None = None) -> Tensor:
    """All steps of a layer of long short-term memory: what `nn.LSTM` is made of.

    Parameters
    ----------
    gi : Tensor (T, N, 4 * H)
        ... The gates are input, forget, cell and output, as in PyTorch.
    s0 : Tensor (2, N, H)
        h and c before the first step.
    w : Tensor (4 * H, H)
        ...
    b : Tensor (4 * H,), optional
        ...

    Returns
    -------
    Tensor (2, T, N, H)
        h and c after each step.

    Examples
    --------
    >>> import tinygraph as tg
    >>> gi = tg.Tensor([[[0.0, 0.0, 1.0, 100.0]]])  # half of the new value gets in, all of it out
    >>> tg.lstm_layer(gi, tg.zeros(2, 1, 1), tg.zeros(4, 1)).value.ravel().round(4)
    array([0.3634, 0.3808], dtype=float32)
    """
    return LstmLayer()(gi, s0, w) if b is None else LstmLayer()(gi, s0, w, b)
