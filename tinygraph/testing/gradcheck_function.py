"""A function at a point: its value and its vector-Jacobian product, as often as a check asks.

Every evaluation starts from the same arrays and the same state of the random generator, so that a
dropout draws the same mask each time, and running statistics start where they started.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tinygraph.base import ArgumentError
from tinygraph.engine import Array, Device, Shape, Tensor, default_generator, leaf, no_grad
from tinygraph.engine.graph import run_backward, topological_order


class Evaluation(NamedTuple):
    """One forward."""

    leaves: list[Tensor]
    outputs: list[Tensor]

    @property
    def nodes(self) -> list[Tensor]:
        """The nodes that ops made."""
        return [node for node in topological_order(self.outputs) if node.op is not None]


class PointFunction:
    """`fn` at some arrays, on a device.

    Parameters
    ----------
    fn : callable
        Takes one Tensor for each array; returns a Tensor or a sequence of Tensors of floats.
    arrays : sequence of arrays on the host
    wrt : positions of the arrays to differentiate
    device : Device
    """

    def __init__(
        self, fn: Callable[..., Any], arrays: Sequence[Array], wrt: Sequence[int], device: Device
    ) -> None:
        self.fn, self.arrays, self.wrt, self.device = fn, list(arrays), list(wrt), device
        self.generator = default_generator.state_dict()
        self.written: set[int] = set(range(len(self.arrays)))  # copied for each evaluation
        first = self.evaluate()
        self.shapes: list[Shape] = [y.shape for y in first.outputs]
        self.size = sum([y.size for y in first.outputs])
        written = {node.inputs[i] for node in first.nodes for i in node.op.updates}
        self.updates = [i for i, node in enumerate(first.leaves) if node in written]

    def evaluate(self, arrays: Sequence[Array] | None = None, grad: bool = True) -> Evaluation:
        """The graph of fn on new leaves; the arrays that it may write are copied."""
        default_generator.load_state_dict(self.generator)
        leaves = []
        for position, array in enumerate(self.arrays if arrays is None else arrays):
            own = array.copy(order="K") if position in self.written else array
            node = leaf(self.device.from_numpy(own), self.device)
            node.requires_grad = grad and position in self.wrt
            leaves.append(node)
        outputs = self.fn(*leaves)
        outputs = [outputs] if isinstance(outputs, Tensor) else list(outputs)
        for y in outputs:
            if not isinstance(y, Tensor) or y.dtype.kind != "f":
                got = y.dtype if isinstance(y, Tensor) else type(y).__name__
                raise ArgumentError(
                    "gradcheck", "fn", "a Tensor of floats, or a sequence of them", got
                )
        return Evaluation(leaves, outputs)

    def with_arrays(self, arrays: Sequence[Array], wrt: Sequence[int]) -> PointFunction:
        """The same function at another point, from the same state of the generator."""
        default_generator.load_state_dict(self.generator)
        return PointFunction(self.fn, arrays, wrt, self.device)

    def value(self, arrays: Sequence[Array] | None = None) -> Array:
        """All outputs in one flat float64 array, which shares no memory with anything."""
        with no_grad():
            outputs = self.evaluate(arrays, grad=False).outputs
        if not self.device.on_host:
            values = self.device.to_host(*[y.value for y in outputs])
        else:
            values = [y.value for y in outputs]
        return flat(values)

    def split(self, upstream: Array) -> list[Array]:
        """A flat array cut into one array for each output."""
        parts, start = [], 0
        for shape in self.shapes:
            size = int(np.prod(shape))
            parts.append(upstream[start : start + size].reshape(shape))
            start += size
        return parts

    def upstream(self, run: Evaluation, upstream: Array) -> list[Array]:
        """A flat upstream gradient as one array for each output, in its dtype."""
        parts = zip(self.split(upstream), run.outputs, strict=True)
        return [part.astype(y.dtype) for part, y in parts]

    def vjp(self, upstream: Array, arrays: Sequence[Array] | None = None) -> list[Array | None]:
        """The gradients of sum(upstream * outputs) by all inputs, on the host; None: not wanted."""
        run = self.evaluate(arrays)
        return self.backward(run, self.upstream(run, upstream))

    def backward(
        self, run: Evaluation, gradients: list[Array], retain_graph: bool = False
    ) -> list[Array | None]:
        """Backward over an evaluation, and what it left in the leaves.

        Raises
        ------
        BrokenOpError
            An op returned something of another shape or dtype than its input.
        """
        chosen = [
            (y, g) for y, g in zip(run.outputs, gradients, strict=True) if y.requires_grad
        ]  # what no gradient can flow into has a gradient of zero
        if chosen:
            outputs, upstream = zip(*chosen, strict=True)
            run_backward(outputs, upstream, retain_graph)
        return [self._gradient(run, position) for position in range(len(self.arrays))]

    def _gradient(self, run: Evaluation, position: int) -> Array | None:
        if position not in self.wrt:
            return None
        node = run.leaves[position]
        if node.grad is None:
            return np.zeros(node.shape, node.dtype)
        return np.asarray(self.device.to_numpy(node.grad))


def flat(values: Sequence[Array]) -> Array:
    """Arrays in one flat float64 array of its own."""
    return np.concatenate([np.asarray(v, np.float64).reshape(-1) for v in values])
