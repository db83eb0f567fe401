"""Batch normalization: each channel to mean 0 and variance 1 over the batch."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, ClassVar

import numpy as np

from tinygraph.base import ShapeError, above, number, whole
from tinygraph.engine import Buffer, Operand, Parameter, Tensor, eager_memory, here
from tinygraph.nn.init import ones_, zeros_
from tinygraph.nn.inputs import as_input
from tinygraph.nn.module import Module
from tinygraph.ops.normalization.batch_norm import batch_norm

SMALL_BATCH = 16  # below it, the statistics of a batch are too noisy to stand for those of the data


class BatchNorm(Module):
    """What BatchNorm1d and BatchNorm2d share; `axes` names the shapes that they take."""

    axes: ClassVar[dict[int, str]]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        bias: bool = True,
        dtype: Any = np.float32,
    ) -> None:
        layer = type(self).__name__
        self.num_features = whole(layer, "num_features", num_features)
        self.eps = number(layer, "eps", eps, 0)
        self.momentum = number(layer, "momentum", momentum, 0, 1)
        ones = np.ones(self.num_features, dtype)
        self.weight = Parameter(ones, name="weight") if affine else None
        self.bias = Parameter(0 * ones, name="bias") if affine and bias else None
        tracked = bool(track_running_stats)
        self.running_mean = Buffer(0 * ones) if tracked else None
        self.running_var = Buffer(ones) if tracked else None
        self.num_batches_tracked = Buffer(0, dtype="int64") if tracked else None
        self._warned = False

    def reset_parameters(self) -> None:
        """Forget the running statistics, and start again with scale 1 and shift 0."""
        for leaf in (self.weight, self.running_var):
            if leaf is not None:
                ones_(leaf)
        for leaf in (self.bias, self.running_mean):
            if leaf is not None:
                zeros_(leaf)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.value[...] = 0

    def forward(self, x: Operand) -> Tensor:
        x = as_input(self, x)
        if x.ndim not in self.axes:
            expected = " or ".join(self.axes.values())
            raise ShapeError(type(self).__name__, "x", expected, f"shape {x.shape}")
        # Without running statistics there is nothing but the batch, in evaluation too.
        by_batch = self.training or self.running_mean is None
        y, each = self._normalized(x, by_batch)
        if self.training:
            here.top.do(partial(self._after_training_batch, each), "count", anywhere=True)
        return y

    def _normalized(self, x: Tensor, by_batch: bool) -> tuple[Tensor, int]:
        """The output, and how many numbers a feature's statistics are of: N * H * W."""
        running = self.running_mean, self.running_var
        y = batch_norm(x, self.weight, self.bias, *running, by_batch, self.momentum, self.eps)
        return y, x.size // max(self.num_features, 1)

    def _after_training_batch(self, each: int) -> None:
        if self.num_batches_tracked is not None:
            _count(self.num_batches_tracked)
        if each < SMALL_BATCH and not self._warned:
            self._warned = True
            # One text for all layers and batches: Python shows it once for a place in the program.
            warnings.warn(
                f"batch norm is training on fewer than {SMALL_BATCH} numbers (N * H * W) for each "
                "feature: their mean and variance are noisy. Way out: larger batches, layer.eval() "
                "to use the running statistics, or nn.LayerNorm",
                UserWarning,
                stacklevel=6,
            )

    def extra_repr(self) -> str:
        text = f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"
        affine, tracked = self.weight is not None, self.running_mean is not None
        text = f"{text}, affine={affine}, track_running_stats={tracked}"
        return f"{text}, bias=False" if affine and self.bias is None else text


def _count(batches: Buffer) -> None:
    """One more.  On a GPU our own kernel adds, which a captured step can repeat."""
    if batches.device.on_host:
        batches.value[...] += 1
        return
    mem, one = eager_memory((False, False), batches.device), np.ones((), batches.dtype)
    batches.value[...] = above.add_arrays(mem, batches.value, mem.constant(one))


class BatchNorm1d(BatchNorm):
    """Batch normalization of features (N, C) or sequences (N, C, L): see `tg.batch_norm`.

    Parameters
    ----------
    num_features : int
        C.
    eps : float
        Added to the variance.
    momentum : float
        Weight of a new batch in the running statistics.
    affine : bool
        Whether there is a scale for each channel.
    track_running_stats : bool
        If False, evaluation uses the statistics of the batch too.
    bias : bool
        Whether there is a shift too.
    dtype : dtype
        Of parameters and running statistics; the input must have it too.

    Attributes
    ----------
    weight, bias : Parameter (C,) or None
        Scale, 1 at first, and shift, 0 at first.
    running_mean, running_var : Buffer (C,) or None
        What evaluation uses; 0 and 1 at first.
    num_batches_tracked : Buffer () or None
        On how many batches it was called in training, int64.  A graph that is run again moves the
        running statistics, but is no call and not counted.

    Warns
    -----
    UserWarning
        Once for each layer, in training on fewer than 16 samples.

    References
    ----------
    Ioffe, Szegedy, "Batch normalization: accelerating deep network training by reducing internal
    covariate shift", ICML 2015.
    https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm1d.html

    Examples
    --------
    >>> import tinygraph as tg
    >>> layer = tg.nn.BatchNorm1d(2)
    >>> y = layer(tg.randn(100, 2) + 5.0)
    >>> bool(abs(y.value.mean()) < 1e-5), bool(abs(y.value.std() - 1) < 1e-3)
    (True, True)
    >>> layer.eval()(tg.zeros((1, 2))).shape
    (1, 2)
    """

    axes: ClassVar[dict[int, str]] = {2: "(N, C)", 3: "(N, C, L)"}


class BatchNorm2d(BatchNorm):
    """Batch normalization of images (N, C, H, W), channel by channel: see `tg.batch_norm`.

    Parameters, attributes, warning and references are those of `BatchNorm1d`.

    Examples
    --------
    >>> import tinygraph as tg
    >>> layer = tg.nn.BatchNorm2d(3)
    >>> list(layer.state_dict())
    ['weight', 'bias', 'running_mean', 'running_var', 'num_batches_tracked']
    >>> layer.eval()(tg.ones((2, 3, 8, 8))).shape
    (2, 3, 8, 8)
    """

    axes: ClassVar[dict[int, str]] = {4: "(N, C, H, W)"}
