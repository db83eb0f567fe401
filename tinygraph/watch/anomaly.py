"""Bad values: which op made the first NaN or infinity, and which op was given what it refuses.

While `detect_anomaly` is on, every node remembers the user's line that made it, and every result of
a forward or a backward is looked at.  An op is blamed for what it makes out of finite numbers, and
for a NaN; an infinity that was handed to it, such as the -inf of a mask, may pass.  Each launch on
a GPU is waited for, so that an error there names it.

Arrays of leaves that a backward will read are summed up in the forward, and again in the backward:
whatever has written to one in between, `w.value[...] = 0` say, is told there.
"""

from __future__ import annotations

import linecache
import pathlib
import sys
import weakref
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from tinygraph.base import GraphError
from tinygraph.engine import Array, Op, Runner, Tensor, here, topological_order
from tinygraph.engine.running import Bare
from tinygraph.engine.writes import holds

_PACKAGE = str(pathlib.Path(__file__).parents[1])


class _Look(Runner):
    """Looks at what each body returns, of nodes: in a plan nobody would know the line."""

    plans = False

    def __init__(self) -> None:
        # For a node, by its id: the leaves' arrays that its op has saved, and their checksums.
        self.sums: dict[int, tuple[Any, list[tuple[Tensor, Array, int]]]] = {}

    def forward(self, node: Any, mem: Any, arrays: list[Array]) -> Any:
        if isinstance(node, Tensor) and node.value is None:  # a new one
            node.made_at = user_line()
        returned = self.below.forward(node, mem, arrays)
        if isinstance(node, Tensor) and isinstance(returned, tuple):
            result, *given = _on_host(mem.device, [returned[0], *arrays])
            look(node.op.name, "forward", node.made_at, given, result)
            if mem.device.on_host and True in mem.needs:
                self.sum_up(node, returned[1])
        return returned

    def sum_up(self, node: Tensor, saved: Any) -> None:
        """Note what the arrays of leaves are that a node's op has saved."""
        leaves = [x for x in node.inputs if x.op is None and holds(saved, x.value)]
        if leaves:
            key, sums = id(node), [(x, x.value, checksum(x.value)) for x in leaves]
            self.sums[key] = weakref.ref(node, lambda _: self.sums.pop(key, None)), sums

    def backward(self, node: Any, mem: Any, grad: Array, saved: Any) -> Any:
        for x, array, before in self.sums.get(id(node), (None, ()))[1]:
            if checksum(array) != before:
                raise GraphError(
                    f"detect_anomaly: the array of the leaf {x.name or ''}{x.shape} was written to "
                    f"after the forward, and the backward of {node.op.name} needs what it was. Way "
                    "out: call backward before that, or x.value = array in place of x.value[...]. "
                    f"The node was made at {node.made_at}"
                )
        gradients = self.below.backward(node, mem, grad, saved)
        if isinstance(node, Tensor) and isinstance(gradients, tuple):
            given = _on_host(mem.device, [grad, node.value, *[x.value for x in node.inputs]])
            for needed, g in zip(node.needs, gradients, strict=False):
                if needed and g is not None:
                    (result,) = _on_host(mem.device, [g])
                    look(node.op.name, "backward", node.made_at, given, result)
        return gradients

    def launch(self, launch: Any) -> None:
        """Wait for a GPU: what goes wrong there would show at some later launch."""
        if launch.on_gpu:
            here.top.wait("waited for a launch")
            launch.waits = True
        self.below.launch(launch)


def _on_host(device: Any, arrays: list[Any]) -> list[Any]:
    """The arrays, where the host can look at them; what is no array is left to the engine."""
    if device.on_host:
        return arrays
    return [device.to_numpy(a) if device.owns(a) else a for a in arrays]


class detect_anomaly(Bare):
    """Stop at the first op that makes a NaN or an infinity, forward or backward, in this thread.

    A context, which stands above functions, generators and `async def` too, as `no_grad` does.

    On a GPU each launch is waited for too: an illegal access is told by the launch that made it.
    On the cpu a leaf whose array was written to between forward and backward is told as well.

    Raises
    ------
    GraphError
        With the op, the first bad index and value, and the source line that made the node.
    KernelLaunchError
        From a GPU, with kernel, grid, block and shared memory.

    Examples
    --------
    >>> import tinygraph as tg
    >>> with tg.detect_anomaly():
    ...     tg.log(tg.Tensor([1.0, -1.0]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    tinygraph.errors.GraphError: detect_anomaly: log made nan at [1] in its forward...
    """

    _runner = _Look


def checksum(array: Array) -> int:
    """Another number for other bytes, but for one case in 2^32."""
    return zlib.crc32(np.ascontiguousarray(array).data)


def user_line() -> str:
    """The innermost line on the stack that is not tinygraph's own: file, number and text."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    name, number = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(name, number, frame.f_globals).strip()
    return f"{name}:{number}: {text}" if text else f"{name}:{number}"


def look(op: str, direction: str, made_at: str | None, given: Iterable[Array], result: Any) -> None:
    """Raise if an op's result holds a NaN, or an infinity that was not in what it was given."""
    if getattr(result, "dtype", np.dtype(bool)).kind != "f":
        return
    bad = np.isnan(result)
    if not bad.any():
        bad = np.isinf(result)
        if not bad.any() or any(np.isinf(a).any() for a in given if a.dtype.kind == "f"):
            return
    index = [int(i) for i in np.argwhere(bad)[0]]
    value = result[tuple(index)]
    had = any(np.isnan(a).any() for a in given if a.dtype.kind == "f")
    verb = "was given nan and passed it on" if had else f"made {value}"
    line = made_at or "unknown, for the node was made before detect_anomaly was on"
    raise GraphError(
        f"detect_anomaly: {op} {verb} at {index} in its {direction} ({int(bad.sum())} of "
        f"{result.size} elements). The node was made at {line}"
    )


def raise_for_bad_values(node: Tensor) -> None:
    """Let every op below a node look at its inputs, where none has: a GPU is not waited for.

    Raises
    ------
    ArgumentError
        From the first op, in topological order, that was given what it does not take.
    """
    if node.device.on_host:
        return
    for made in topological_order([node]):
        if made.op is not None and type(made.op).check is not Op.check:
            made.op.check(*[x.numpy() for x in made.inputs])
