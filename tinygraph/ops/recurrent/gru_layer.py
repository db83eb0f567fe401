"""A layer of gated recurrent units (see recurrent.py).

    gi, gh, each in three gates of H numbers      s = (h,)
    r, z = sigmoid(gi_1 + gh_1), sigmoid(gi_2 + gh_2)           n = tanh(gi_3 + r * gh_3)

    h' = n + z * (h - n)                          gh = gh' * z

    q = gh' * (1 - z) * (1 - n**2)                ggi_3 = q, ggh_3 = q * r
    ggi_1 = ggh_1 = q * gh_3 * r * (1 - r)        ggi_2 = ggh_2 = gh' * (h - n) * z * (1 - z)

Source: Cho et al., "Learning phrase representations using RNN encoder-decoder for statistical
machine translation", EMNLP 2014; r is applied after the product, as in cuDNN and PyTorch.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tinygraph.base import frozen
from tinygraph.engine import Array, Op, Operand, Tensor
from tinygraph.ops.recurrent.recurrent import Recurrent, recurrent, sigmoid


@frozen
class GruLayer(Recurrent, Op):
    gates: ClassVar[int] = 3
    kept: ClassVar[int] = 4  # r, z, n and what r multiplies
    shares_gates: ClassVar[bool] = False

    def step(self, gi: Array, gh: Array, before: Array, after: Array, kept: Array) -> None:
        r, z, n, reset = np.split(kept, 4, axis=1)
        units = r.shape[1]
        gates = kept[:, : 2 * units]
        np.add(gi[:, : 2 * units], gh[:, : 2 * units], out=gates)
        sigmoid(gates)
        reset[...] = gh[:, 2 * units :]
        np.multiply(r, reset, out=n)
        n += gi[:, 2 * units :]
        np.tanh(n, out=n)
        (h,) = after
        np.subtract(before[0], n, out=h)
        h *= z
        h += n

    def step_back(
        self, kept: Array, before: Array, after: Array, g: Array, ggi: Array, ggh: Array
    ) -> None:
        r, z, n, reset = np.split(kept, 4, axis=1)
        gr, gz, gn = np.split(ggi, 3, axis=1)
        (gh,), units = g, r.shape[1]
        np.multiply(gh * (before[0] - n), z * (1 - z), out=gz)
        np.multiply(gh * (1 - z), 1 - n * n, out=gn)
        np.multiply(gn * reset, r * (1 - r), out=gr)
        ggh[:, : 2 * units] = ggi[:, : 2 * units]
        np.multiply(gn, r, out=ggh[:, 2 * units :])
        gh *= z


@recurrent
def gru_layer(gi: Operand, s0: Operand, w: Operand, b: Operand | None = None) -> Tensor:
    """All steps of a layer of gated recurrent units: what `nn.GRU` is made of.

    Parameters
    ----------
    gi : Tensor (T, N, 3 * H)
        ... The gates are reset, update and new, as in PyTorch.
    s0 : Tensor (1, N, H)
        h before the first step.
    w : Tensor (3 * H, H)
        ...
    b : Tensor (3 * H,), optional
        ...

    Returns
    -------
    Tensor (1, T, N, H)
        h after each step.

    Examples
    --------
    >>> import tinygraph as tg
    >>> gi = tg.Tensor([[[0.0, 0.0, 100.0]]])  # half of the new value, half of the old one
    >>> tg.gru_layer(gi, tg.zeros(1, 1, 1), tg.zeros(3, 1)).value.ravel()
    array([0.5], dtype=float32)
    """
    return GruLayer()(gi, s0, w) if b is None else GruLayer()(gi, s0, w, b)
