"""Losses: single losses of elements or rows, and how they become one number.

loss = sum of l over M elements / M ("mean"), the sum ("sum"), or l itself ("none")
gx   = gloss * dl/dx / M  ("mean"),  gloss * dl/dx  ("sum", "none")

A member states its mathematics, and what its kernels take beside x and y:

    PairLoss      l of two arrays of one shape: `losses` and their `slope`; NAME_forward and
                  NAME_backward in NAME.cu (see elementwise_loss.cuh)
    ResidualLoss  l of d = x - y: `of_residual`; NAME_forward
    LabelLoss     l of scores (N, C, D...) and one label for each row of them

`@pair_loss` and `@label_loss` above the public function say what all members do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from tinygraph.base import DtypeError, ShapeError, frozen, one_of
from tinygraph.cuda import Kernel, op_kernel
from tinygraph.engine import Array, Gradients, Memory, Needs, Shape, Spec, require_float
from tinygraph.ops.common import THREADS, documented, for_each, grid_of, require_range

REDUCTIONS = ("mean", "sum", "none")


@frozen
class Loss:
    """Mixed into all losses."""

    reduction: str = "mean"

    name: ClassVar[str]

    def result(self, each: Shape, dtype: np.dtype[Any]) -> Spec:
        """What becomes of single losses of that shape."""
        if self.reduction not in REDUCTIONS:  # first, for tiny graphs feel each microsecond
            one_of(self.name, "reduction", self.reduction, REDUCTIONS)
        return Spec(each if self.reduction == "none" else (), dtype)

    def reduce(self, mem: Memory, losses: Array, count: int | None = None) -> Array:
        """Single losses reduced; a mean divides by `count`, or by their number."""
        if self.reduction == "none":
            return losses
        loss = np.sum(losses, axis=None, out=mem.empty((), losses.dtype))
        if self.reduction == "mean":
            loss /= losses.dtype.type(losses.size if count is None else count)  # 0 / 0 is NaN
        return loss

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        if not all(carries):
            return None
        return "map" if self.reduction == "none" else "sum"

    def divisor(self, x: Any, *others: Any) -> float | None:
        return float(x.shape[0]) if self.reduction == "mean" else 1.0


# ---- losses between two arrays of one shape -------------------------------------------------


class PairLoss(Loss):
    """Mixed into losses that compare two arrays of one shape, element by element."""

    def losses(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        """The loss of each element, and what `slope` reads."""
        raise NotImplementedError

    def slope(self, mem: Memory, saved: Any, operand: int) -> tuple[Array, float]:
        """dl/dx (operand 0) or dl/dy (1) of each element, as an array and a factor beside it."""
        raise NotImplementedError

    @property
    def constants(self) -> tuple[float, ...]:
        """Hyper-parameters that the kernel of forward takes."""
        return ()

    def infer(self, x: Spec, y: Spec) -> Spec:
        require_float(self.name, x=x, y=y)
        if x.shape != y.shape:
            expected = f"the shape of x, {x.shape}"
            way_out = "reshape one; broadcasting (N, 1) with (N,) would give (N, N)"
            raise ShapeError(self.name, "y", expected, y.shape, way_out)
        return self.result(x.shape, x.dtype)

    def forward(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        losses, saved = self.losses(mem, x, y)
        return self.reduce(mem, losses), saved if True in mem.needs else None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        gx = self._gradient(mem, gy, *self.slope(mem, saved, 0)) if needs[0] else None
        return gx, self._gradient(mem, gy, *self.slope(mem, saved, 1)) if needs[1] else None

    def _gradient(self, mem: Memory, gy: Array, slope: Array, factor: float) -> Array:
        """gy * factor * slope / M, in one pass where the upstream gradient is a single number."""
        if self.reduction == "mean" and slope.size:
            factor /= slope.size
        g = mem.empty(slope.shape, slope.dtype)
        if not gy.ndim:
            return np.multiply(slope, gy * slope.dtype.type(factor), out=g)
        np.multiply(slope, gy, out=g)
        if factor != 1:
            g *= factor
        return g

    def forward_kernel(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        return self._launch_forward(mem, x, y), (x, y) if True in mem.needs else None

    def backward_kernel(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        kernel = op_kernel(self.name, f"{self.name}_backward", gy.dtype)
        return self._launch_backward(mem, kernel, gy, saved, 1.0, needs)

    def _launch_forward(self, mem: Memory, *arrays: Array) -> Array:
        """The loss.  A sum over several blocks takes a second launch."""
        shape, dtype, size = arrays[0].shape, arrays[0].dtype, arrays[0].size
        kernel = op_kernel(self.name, f"{self.name}_forward", dtype)
        none = mem.empty((0,), dtype)
        if self.reduction == "none":
            losses = mem.empty(shape, dtype)
            for_each(kernel, size, *arrays, losses, none, size, 1, *self.constants)
            return losses
        loss = mem.empty((), dtype)
        grid, divisor = max(grid_of(size), 1), size if self.reduction == "mean" else 1
        one = grid == 1  # then its sum is the loss
        sums = loss if one else mem.empty((grid,), dtype)
        kernel(grid, THREADS, *arrays, none, sums, size, divisor if one else 1, *self.constants)
        if not one:
            op_kernel("losses", "loss_finish", dtype)(1, THREADS, sums, loss, grid, divisor)
        return loss

    def _launch_backward(
        self,
        mem: Memory,
        kernel: Kernel,
        gy: Array,
        saved: tuple[Array, ...],
        factor: float,
        needs: Needs,
    ) -> Gradients:
        """Both gradients in one launch; a null pointer in the place of one that is not wanted."""
        x, each = saved[0], int(self.reduction == "none")
        if self.reduction == "mean" and x.size:
            factor /= x.size
        gx, gt = (mem.empty(x.shape if needed else (0,), x.dtype) for needed in needs)
        for_each(kernel, x.size, gy, *saved, gx, gt, x.size, factor, each)
        return gx if needs[0] else None, gt if needs[1] else None


class ResidualLoss(PairLoss):
    """Mixed into losses that are a function l of d = x - y, so that dl/dx = -dl/dy = dl/dd."""

    factor: ClassVar[float] = 1.0

    def of_residual(self, mem: Memory, d: Array) -> tuple[Array, Array]:
        """l(d), and dl/dd up to `factor`; d may be overwritten."""
        raise NotImplementedError

    def forward(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        d = np.subtract(x, y, out=mem.empty(x.shape, x.dtype))
        losses, slope = self.of_residual(mem, d)
        return self.reduce(mem, losses), slope if True in mem.needs else None

    def backward(self, mem: Memory, gy: Array, slope: Array, needs: Needs) -> Gradients:
        gx = self._gradient(mem, gy, slope, self.factor) if needs[0] else None
        return gx, self._gradient(mem, gy, slope, -self.factor) if needs[1] else None

    def forward_kernel(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        wanted = True in mem.needs
        slope = mem.empty(x.shape if wanted else (0,), x.dtype)
        return self._launch_forward(mem, x, y, slope), slope if wanted else None

    def backward_kernel(self, mem: Memory, gy: Array, slope: Array, needs: Needs) -> Gradients:
        kernel = op_kernel("losses", "residual_loss_backward", slope.dtype)
        return self._launch_backward(mem, kernel, gy, (slope,), self.factor, needs)


pair_loss = documented(
    """
    Parameters
    ----------
    x, y : Tensor
        Same shape; float32 or float64, at least one of them.  The dtypes promote as in PyTorch.
    reduction : {"mean", "sum", "none"}
        Over all elements; "none" keeps them.

    Returns
    -------
    Tensor
        0-d, or of the shape of `x` for "none".  The mean of no element is NaN.

    Raises
    ------
    ShapeError
        The shapes differ: nothing is broadcast here.
    DtypeError
        Neither input is float32 or float64.
    ArgumentError
        An unknown reduction.
    """
)


# ---- losses of labels -----------------------------------------------------------------------


@frozen
class LabelLoss(Loss):
    """Mixed into losses of scores (N, C, D...) and one label for each row of them."""

    ignore_index: int | None = None

    scores: ClassVar[str]  # the name of the first argument
    labels_are: ClassVar[str] = "integers of shape {each}"  # what the second one may be

    def infer(self, x: Spec, labels: Spec) -> Spec:
        require_float(self.name, **{self.scores: x})
        if x.ndim < 2 or not x.shape[1]:
            expected = "(N, C) or (N, C, D...) with at least one class"
            raise ShapeError(self.name, self.scores, expected, x.shape)
        each = (x.shape[0], *x.shape[2:])
        if labels.dtype.kind not in "iu":
            expected = self.labels_are.format(each=each, x=x.shape)
            got = f"{labels.dtype} of shape {labels.shape}"
            way_out = "convert class numbers with labels.astype('int64')"
            raise DtypeError(self.name, "labels", expected, got, way_out)
        if labels.shape != each:
            expected = f"shape {each}, one for each row of {self.scores} {x.shape}"
            way_out = "integer labels name a class; they have no class axis"
            raise ShapeError(self.name, "labels", expected, labels.shape, way_out)
        return self.result(each, x.dtype)

    def check(self, x: Array, labels: Array) -> None:
        most = x.shape[1] - 1
        expected = f"class numbers from 0 to {most}"
        way_out = "number the classes from 0, or pass ignore_index"
        require_range(self.name, "labels", labels, 0, most, expected, way_out, self.ignore_index)

    def kept(self, labels: Array) -> tuple[Array, Array | None, int]:
        """Labels that all name a class, which of them count (None: all), and how many do."""
        if self.ignore_index is None:
            return labels, None, labels.size
        counts = labels != self.ignore_index
        return np.where(counts, labels, 0), counts, int(np.count_nonzero(counts))

    def divisor(self, x: Any, *others: Any) -> float | None:
        """Of a mean, how many labels count: known before any score is."""
        labels = others[0]
        if self.reduction != "mean" or self.ignore_index is None:
            return super().divisor(x, *others)
        if isinstance(labels, Spec):
            return None
        return float(np.count_nonzero(labels != self.ignore_index))

    @property
    def ignored(self) -> tuple[int, int]:
        """Whether labels of some value are ignored, and which: for the kernels."""
        return (0, 0) if self.ignore_index is None else (1, self.ignore_index)

    def total(
        self, mem: Memory, dtype: Any, grid: int, leave: Callable[[Array, Array, int], None]
    ) -> tuple[Array, Array]:
        """The loss, and what it was divided by (empty for a sum): both stay on the device.

        `leave(sums, counts, divides)` is a launch over `grid` blocks, each of which leaves a sum.
        """
        loss, count = mem.empty((), dtype), mem.empty((1,), np.int64)
        mean = int(self.reduction == "mean")
        if grid == 1:
            leave(loss, count, mean)
        else:
            sums, counts = mem.empty((grid,), dtype), mem.empty((grid,), np.int64)
            leave(sums, counts, 0)
            finish = op_kernel("losses", "sum_of_partials", dtype)
            finish(1, THREADS, sums, counts, loss, count, grid, mean)
        return loss, count if mean else mem.empty((0,), np.int64)


label_loss = documented(
    """
    Parameters
    ----------
    labels : integers (N,) or (N, D...)
        The class of each sample.
    reduction : {"mean", "sum", "none"}
        Over all labels; "none" keeps one loss for each.
    ignore_index : int, optional
        Integer labels of this value count neither in the loss nor in the mean.  PyTorch's default
        of -100 is not taken over: without it, every label must name a class.

    Returns
    -------
    Tensor
        0-d, or of the shape of integer labels for "none".  The mean of no label at all is NaN.

    Raises
    ------
    ShapeError, DtypeError
        Labels do not fit the scores, or are not integers.
    ArgumentError
        A label out of range, or an unknown reduction.
    """
)
