"""What losses share: reductions with their derivatives, and labels with their checks.

loss = sum of l over M elements / M ("mean"), the sum ("sum"), or l itself ("none")
gx   = gloss * dl/dx / M  ("mean"),  gloss * dl/dx  ("sum", "none")
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tinygraph.cuda import Kernel, op_kernel
from tinygraph.errors import ArgumentError, ShapeError, nearest
from tinygraph.frozen import frozen
from tinygraph.memory import Memory
from tinygraph.op import Gradients
from tinygraph.ops.shared.launch import THREADS, for_each, grid_of
from tinygraph.shapes import Array, Shape, Spec, require_float

REDUCTIONS = ("mean", "sum", "none")


# ---- reductions -----------------------------------------------------------------------------


def require_reduction(op: str, reduction: str) -> str:
    """The reduction of a loss, or an error that names the three."""
    if reduction not in REDUCTIONS:
        raise ArgumentError(
            op,
            "reduction",
            "'mean', 'sum' or 'none'",
            repr(reduction),
            nearest(str(reduction), REDUCTIONS),
        )
    return reduction


def reduce(mem: Memory, losses: Array, reduction: str, count: int | None = None) -> Array:
    """The reduction of one loss for each element; a mean divides by `count`, or by their number."""
    if reduction == "none":
        return losses
    loss = np.sum(losses, axis=None, out=mem.empty((), losses.dtype))
    if reduction == "mean":
        loss /= losses.dtype.type(losses.size if count is None else count)  # 0 / 0 is NaN
    return loss


def pass_upstream(mem: Memory, gy: Array, slope: Array, scale: float) -> Array:
    """gy * scale * slope, in one pass where the upstream gradient is a single number."""
    g = mem.empty(slope.shape, slope.dtype)
    if not gy.ndim:
        return np.multiply(slope, gy * slope.dtype.type(scale), out=g)
    np.multiply(slope, gy, out=g)
    if scale != 1:
        g *= scale
    return g


# ---- losses between two arrays of one shape -------------------------------------------------


@frozen
class PairLoss:
    """Mixed into losses that compare two arrays of one shape, element by element.

    Their kernels stand in cuda/NAME.cu, NAME_forward and NAME_backward; see elementwise_loss.cuh.
    """

    reduction: str = "mean"

    name: ClassVar[str]

    @property
    def constants(self) -> tuple[float, ...]:
        """Hyper-parameters that the kernel of forward takes."""
        return ()

    def infer(self, x: Spec, y: Spec) -> Spec:
        require_float(self.name, x=x, y=y)
        if x.shape != y.shape:
            raise ShapeError(
                self.name,
                "y",
                f"the shape of x, {x.shape}",
                y.shape,
                "reshape one; broadcasting (N, 1) with (N,) would give (N, N)",
            )
        return x if self.reduction == "none" else Spec((), x.dtype)

    def scale(self, elements: int) -> float:
        """By how much the derivative of one element's loss counts in the output."""
        return 1 / elements if self.reduction == "mean" and elements else 1.0

    def forward_kernel(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        return self._launch_forward(mem, x, y), (x, y) if True in mem.needs else None

    def backward_kernel(
        self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]
    ) -> Gradients:
        kernel = op_kernel(self.name, f"{self.name}_backward", gy.dtype)
        return self._launch_backward(mem, kernel, gy, saved, self.scale(saved[0].size), needs)

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
        scale: float,
        needs: tuple[bool, ...],
    ) -> Gradients:
        """Both gradients in one launch; a null pointer in the place of one that is not wanted."""
        x, each = saved[0], int(self.reduction == "none")
        gx, gt = (mem.empty(x.shape if needed else (0,), x.dtype) for needed in needs)
        for_each(kernel, x.size, gy, *saved, gx, gt, x.size, scale, each)
        return gx if needs[0] else None, gt if needs[1] else None

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        if not all(carries):
            return None
        return "map" if self.reduction == "none" else "sum"

    def tile_scale(self, samples: int, batch: int) -> float:
        return samples / batch if self.reduction == "mean" else 1.0


class ResidualLoss(PairLoss):
    """Mixed into losses that are a function l of d = x - y.

    `forward` saves the slope dl/dd up to a constant `factor`, and gx = gloss * dl/dd = -gy.
    """

    factor: ClassVar[float] = 1.0

    def backward(self, mem: Memory, gy: Array, slope: Array, needs: tuple[bool, ...]) -> Gradients:
        scale = self.factor * self.scale(slope.size)
        gx = pass_upstream(mem, gy, slope, scale) if needs[0] else None
        gt = pass_upstream(mem, gy, slope, -scale) if needs[1] else None
        return gx, gt

    def forward_kernel(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        wanted = True in mem.needs
        slope = mem.empty(x.shape if wanted else (0,), x.dtype)
        return self._launch_forward(mem, x, y, slope), slope if wanted else None

    def backward_kernel(
        self, mem: Memory, gy: Array, slope: Array, needs: tuple[bool, ...]
    ) -> Gradients:
        kernel = op_kernel("losses", "residual_loss_backward", slope.dtype)
        scale = self.factor * self.scale(slope.size)
        return self._launch_backward(mem, kernel, gy, (slope,), scale, needs)


# ---- losses of integer labels ---------------------------------------------------------------


def require_classes(op: str, argument: str, x: Spec) -> Shape:
    """The shape of one label for each row of x, (N, D...), or an error about the class axis."""
    require_float(op, **{argument: x})
    if x.ndim < 2 or not x.shape[1]:
        raise ShapeError(op, argument, "(N, C) or (N, C, D...) with at least one class", x.shape)
    return (x.shape[0], *x.shape[2:])


def require_label_shape(op: str, argument: str, x: Spec, labels: Spec) -> None:
    """Raise ShapeError unless there is one integer label for each row of x."""
    each = (x.shape[0], *x.shape[2:])
    if labels.shape != each:
        raise ShapeError(
            op,
            "labels",
            f"shape {each}, one for each row of {argument} {x.shape}",
            labels.shape,
            "integer labels name a class; they have no class axis",
        )


def check_labels(op: str, labels: Array, classes: int, ignore_index: int | None) -> None:
    """Raise ArgumentError unless every label names a class or is `ignore_index`."""
    if not labels.size or (labels.min() >= 0 and labels.max() < classes):
        return
    bad = (labels < 0) | (labels >= classes)
    if ignore_index is not None:
        bad &= labels != ignore_index
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ArgumentError(
            op,
            "labels",
            f"class numbers from 0 to {classes - 1}",
            f"{labels[where]} at index {where}",
            "number the classes from 0, or pass ignore_index",
        )


@frozen
class LabelLoss:
    """Mixed into losses of scores (N, C, D...) and one label for each row of them."""

    reduction: str = "mean"
    ignore_index: int | None = None

    def kept(self, labels: Array) -> tuple[Array, Array | None, int]:
        """Labels that all name a class, which of them count (None: all), and how many do."""
        if self.ignore_index is None:
            return labels, None, labels.size
        counts = labels != self.ignore_index
        return np.where(counts, labels, 0), counts, int(np.count_nonzero(counts))

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        if not all(carries):
            return None
        if self.reduction == "none":
            return "map"
        # With ignore_index the mean's scale depends on all labels: unknown before the batch is cut.
        return None if self.reduction == "mean" and self.ignore_index is not None else "sum"

    def tile_scale(self, samples: int, batch: int) -> float:
        return samples / batch if self.reduction == "mean" else 1.0
