"""Dropout: in training, each element is dropped with probability p and the others are scaled up.

    keep[i]  = r[i] >= p             r uniform in [0, 1), new for each evaluation
    y        = x * keep / (1 - p)    so that the expectation of y is x ("inverted" dropout)
    gx       = gy * keep / (1 - p)   with the same keep

The numbers come from `mem.random`: element i of the whole batch takes number i of a stream, as
float32 whatever the dtype of x, so float64 and a batch cut into tiles drop the same elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import frozen, number
from tinygraph.cuda import op_kernel
from tinygraph.engine import Array, Memory, Operand, Spec, Tensor, as_tensor, require_float
from tinygraph.engine.op import Gradients, Needs, Op
from tinygraph.ops.common import for_each


@frozen
class Dropout(Op):
    p: float

    def infer(self, x: Spec) -> Spec:
        require_float(self.name, x=x)
        return x

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        keep = mem.empty(x.shape, bool)
        np.greater_equal(mem.random(x.shape), np.float32(self.p), out=keep)
        return self._masked(mem, x, keep), keep if mem.needs[0] else None

    def backward(self, mem: Memory, gy: Array, keep: Array, needs: Needs) -> Gradients:
        return (self._masked(mem, gy, keep),)

    def _masked(self, mem: Memory, values: Array, keep: Array) -> Array:
        """values * keep / (1 - p)."""
        if self.p == 1:  # nothing is kept, and 1 / (1 - p) is no number
            return mem.zeros(values.shape, values.dtype)
        out = mem.empty(values.shape, values.dtype)
        np.multiply(values, keep, out=out)
        out *= 1 / (1 - self.p)
        return out

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        r = mem.random(x.shape)  # also where p is 1: later draws do not depend on p
        if self.p == 1:
            return mem.zeros(x.shape, x.dtype), None
        keep = mem.empty(x.shape if mem.needs[0] else (0,), np.bool_)
        y = mem.empty(x.shape, x.dtype)
        kernel = op_kernel("dropout", "dropout_forward", x.dtype)
        for_each(kernel, x.size, x, r, keep, y, x.size, self.p, 1 / (1 - self.p))
        return y, keep if mem.needs[0] else None

    def backward_kernel(
        self, mem: Memory, gy: Array, keep: Array | None, needs: Needs
    ) -> Gradients:
        if keep is None:
            return (mem.zeros(gy.shape, gy.dtype),)
        gx = mem.empty(gy.shape, gy.dtype)
        kernel = op_kernel("dropout", "dropout_backward", gy.dtype)
        for_each(kernel, gy.size, gy, keep, gx, gy.size, 1 / (1 - self.p))
        return (gx,)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map"


def dropout(x: Operand, p: float = 0.5, training: bool = True) -> Tensor:
    """Set each element to zero with probability p, and multiply the others with 1 / (1 - p).

    Parameters
    ----------
    x : Tensor
        Any shape; float32 or float64.
    p : float
        Probability of dropping an element, 0 to 1.
    training : bool
        If False, nothing is dropped or scaled.

    Returns
    -------
    Tensor
        Same shape and dtype; `x` itself where `training` is False or `p` is 0.  `tg.manual_seed`
        makes the choice repeatable; each evaluation of a graph chooses anew.  A NaN or an infinity
        in `x` stays visible, as NaN, where it is dropped, unless p is 1, which gives zeros.

    Raises
    ------
    ArgumentError
        `p` is not a number from 0 to 1.
    DtypeError
        `x` is not of a float dtype.

    References
    ----------
    Srivastava, Hinton, Krizhevsky, Sutskever, Salakhutdinov, "Dropout: a simple way to prevent
    neural networks from overfitting", JMLR 15, 2014.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.manual_seed(0)
    >>> y = tg.dropout(tg.ones(8), p=0.5)
    >>> sorted({float(v) for v in y.value})
    [0.0, 2.0]
    >>> tg.dropout([1.0, 2.0], training=False).value
    array([1., 2.], dtype=float32)
    """
    op = Dropout(number("dropout", "p", p, 0, 1))
    if training and op.p:
        return op(x)
    node = as_tensor(x)
    op.infer(node.spec)  # the same errors where nothing is dropped
    return node
