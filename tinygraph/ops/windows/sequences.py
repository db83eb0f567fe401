"""Sequences (N, C, L) as images of height 1: what ops of one dimension are made of.

    x[n, c, l] = image[n, c, 0, l]        a view, in both directions

An op of images becomes one of sequences by this mixin before it, with settings for a height of 1:

    class MaxPool1d(OfSequences, MaxPool2d): ...        MaxPool1d((1, 3), (1, 2), (0, 1))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from tinygraph.base import ArgumentError
from tinygraph.engine import Array, Memory, Operand, Pair, Spec, Tensor, as_tensor, integer
from tinygraph.engine.op import Gradients, Needs
from tinygraph.ops.common import require_ndim
from tinygraph.ops.shaping.reshape import squeeze, unsqueeze


class OfSequences:
    """Mixed in before an op of images.  Inputs of one axis, such as a bias, stay as they are."""

    name: ClassVar[str]
    legends: ClassVar[dict[str, str]] = {"x": "(N, C, L)"}  # of inputs with three axes

    def infer(self, *specs: Any) -> Spec:
        for (argument, legend), spec in zip(self.legends.items(), specs, strict=False):
            require_ndim(self.name, argument, spec, 3, legend)
        images = [Spec(_raised(spec.shape), spec.dtype) for spec in specs]
        (n, c, _, length), dtype = super().infer(*images)  # type: ignore[misc]
        return Spec((n, c, length), dtype)

    def forward(self, mem: Memory, *arrays: Any) -> tuple[Array, Any]:
        y, saved = super().forward(mem, *_images(arrays))  # type: ignore[misc]
        return y[:, :, 0], saved

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        return _sequences(super().backward(mem, gy[:, :, None], saved, needs))  # type: ignore[misc]

    def forward_kernel(self, mem: Memory, *arrays: Any) -> tuple[Array, Any]:
        y, saved = super().forward_kernel(mem, *_images(arrays))  # type: ignore[misc]
        return y[:, :, 0], saved

    def backward_kernel(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        upstream = gy[:, :, None]
        return _sequences(super().backward_kernel(mem, upstream, saved, needs))  # type: ignore[misc]


def _raised(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:2], 1, *shape[2:]) if len(shape) == 3 else shape


def _images(arrays: tuple[Array, ...]) -> list[Array]:
    return [a[:, :, None] if a.ndim == 3 else a for a in arrays]


def _sequences(gradients: Gradients) -> Gradients:
    return tuple([g[:, :, 0] if g is not None and g.ndim == 4 else g for g in gradients])


def along(op: str, argument: str, value: Any, minimum: int, other: int) -> Pair:
    """An int, or a tuple of one, as the setting of an axis of height 1 and of the sequence.

    >>> along("conv1d", "stride", 3, minimum=1, other=1)
    (1, 3)
    """
    given = value[0] if isinstance(value, (tuple, list)) and len(value) == 1 else value
    if (size := integer(op, argument, given)) < minimum:
        raise ArgumentError(op, argument, f"at least {minimum}", repr(value))
    return other, size


def pooling_along(
    op: str, kernel_size: Any, stride: Any, padding: Any
) -> tuple[Pair, Pair | None, Pair | str]:
    """The arguments of pooling over sequences, as those over images of height 1."""
    step = None if stride is None else along(op, "stride", stride, 1, 1)
    pad = padding if isinstance(padding, str) else along(op, "padding", padding, 0, 0)
    return along(op, "kernel_size", kernel_size, 1, 1), step, pad


def of_sequences(op: str, x: Operand, of_images: Callable[[Tensor], Tensor]) -> Tensor:
    """A function of images on sequences, by views."""
    node = as_tensor(x)
    require_ndim(op, "x", node.spec, 3, "(N, C, L)")
    return squeeze(of_images(unsqueeze(node, 2)), 2)
