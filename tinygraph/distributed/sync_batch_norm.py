"""SyncBatchNorm: batch normalization over the samples of all ranks of a launch.

    N C        samples of all ranks, channels; M numbers in a channel, N * D...

    m = sum of x / M          v = sum of (x - m)^2 / M         y = weight * (x - m) / s + bias
    s = sqrt(v + eps)         each sum over this rank's numbers, and then over the ranks

It is that formula, with two `all_reduce`; their backward carries what a sample of one rank does to
the statistics, and through them to the samples of the others.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, TypeVar

from tinygraph.base import DeviceError, ShapeError, frozen
from tinygraph.distributed.functions import all_reduce, rows_of_ranks
from tinygraph.distributed.joined import world
from tinygraph.engine import Array, Gradients, Memory, Needs, Op, Spec, Tensor
from tinygraph.nn.batch_norm import BatchNorm
from tinygraph.nn.module import Module

M = TypeVar("M", bound=Module)


@frozen
class MoveRunning(Op):
    """The identity of a statistic (C,), which moves the running one towards `factor` times it."""

    momentum: float
    factor: float

    @property
    def updates(self) -> tuple[int, ...]:
        return (1,)

    def infer(self, new: Spec, running: Spec) -> Spec:
        if running != new:
            raise ShapeError(self.name, "running", f"{new.dtype}{list(new.shape)}", running)
        return new

    def forward(self, mem: Memory, new: Array, running: Array) -> tuple[Array, Any]:
        running *= 1 - self.momentum
        running += self.momentum * self.factor * new
        return new, None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        return gy, None

    def forward_kernel(self, mem: Memory, *arrays: Any) -> tuple[Array, Any]:
        if not mem.device.on_host:
            way_out = "nn.BatchNorm2d there, or model.to('cpu')"
            raise DeviceError("SyncBatchNorm", "x", "an array of the host", "one of a GPU", way_out)
        return self.forward(mem, *arrays)

    def backward_kernel(self, mem: Memory, grad: Array, saved: Any, needs: Needs) -> Gradients:
        return self.backward(mem, grad, saved, needs)


class SyncBatchNorm(BatchNorm):
    """Batch normalization with the statistics of the batch on all ranks: see `BatchNorm1d`.

    Takes (N, C), (N, C, L), (N, C, H, W) or (N, C, D, H, W).  In training all ranks call it
    together.  In evaluation, and in one process, it is `BatchNorm1d` or `BatchNorm2d`; its
    parameters, attributes and warning are theirs.

    Raises
    ------
    ShapeError
        Another shape, or fewer than two numbers of a channel on all ranks in training.
    DeviceError
        Several ranks train on GPUs, for which it has no kernel.

    References
    ----------
    Ioffe, Szegedy, "Batch normalization: accelerating deep network training by reducing internal
    covariate shift", ICML 2015.
    https://docs.pytorch.org/docs/stable/generated/torch.nn.SyncBatchNorm.html

    Examples
    --------
    >>> import tinygraph as tg
    >>> model = tg.nn.Sequential(tg.nn.Conv2d(1, 4, 3), tg.nn.BatchNorm2d(4))
    >>> tg.nn.SyncBatchNorm.convert_sync_batchnorm(model)[1]
    SyncBatchNorm(4, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
    """

    axes: ClassVar[dict[int, str]] = {
        2: "(N, C)",
        3: "(N, C, L)",
        4: "(N, C, H, W)",
        5: "(N, C, D, H, W)",
    }
    spans_ranks = True

    def _normalized(self, x: Tensor, by_batch: bool) -> tuple[Tensor, int]:
        if not self.training or world().size == 1:
            return super()._normalized(x, by_batch)
        if x.shape[1] != self.num_features:
            raise ShapeError("SyncBatchNorm", "x", f"{self.num_features} channels", x.shape)
        each = sum(rows_of_ranks(x.shape[0], "SyncBatchNorm")) * math.prod(x.shape[2:])
        if each < 2:
            expected = "at least 2 numbers in each channel on all ranks, for a variance"
            raise ShapeError("SyncBatchNorm", "x", expected, each, "a larger batch, or eval()")
        axes, along = (0, *range(2, x.ndim)), (1, -1, *(1,) * (x.ndim - 2))
        mean = all_reduce(x.sum(axes)) / each  # (C,)
        centred = x - mean.reshape(along)
        variance = all_reduce((centred * centred).sum(axes)) / each
        if self.running_mean is not None and self.running_var is not None:
            mean = MoveRunning(self.momentum, 1.0)(mean, self.running_mean)
            variance = MoveRunning(self.momentum, each / (each - 1))(variance, self.running_var)
        scale = (variance + self.eps) ** -0.5
        if self.weight is not None:
            scale = scale * self.weight
        y = centred * scale.reshape(along)
        return (y if self.bias is None else y + self.bias.reshape(along)), each

    @classmethod
    def convert_sync_batchnorm(cls, module: M) -> M | SyncBatchNorm:
        """The module with a SyncBatchNorm in the place of each batch norm below it.

        Parameters
        ----------
        module : Module
            Changed in place; a batch norm itself is replaced.

        Returns
        -------
        Module
            With the parameters and running statistics that were there, the very objects.
        """
        made: dict[int, Any] = {}
        for parent in list(module.modules()):
            for name, child in list(parent.named_children()):
                if isinstance(child, BatchNorm) and not isinstance(child, cls):
                    made.setdefault(id(child), cls._of(child))
                    vars(parent)[name] = made[id(child)]
        if isinstance(module, BatchNorm) and not isinstance(module, cls):
            return cls._of(module)
        return module

    @classmethod
    def _of(cls, layer: BatchNorm) -> SyncBatchNorm:
        made = cls.__new__(cls)
        vars(made).update(vars(layer))
        return made
