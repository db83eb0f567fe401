"""recording() and checking(): the launches of a stretch of code, taken down or looked at.

    with recording(execute=False) as launches:
        loss.backward()
    launches[0].kernel.name, launches[0].grid, launches[0].bytes

    with checking():
        loss.backward()  # on the emulator; a mistake of a kernel is a KernelLaunchError

Without running it no array is read or written, and memory that the system gives out lazily is never
touched: the launches of a large network are known in a moment, on a small machine.
"""

from __future__ import annotations

import math
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from tinygraph.base import frozen
from tinygraph.cuda.devices import cupy
from tinygraph.cuda.launch import In, InOut, Launch, Out
from tinygraph.engine import Array, Runner
from tinygraph.engine.running import Around, Bare

if TYPE_CHECKING:
    from tinygraph.cuda.reading.signature import KernelParameter

Extent = tuple[int, int, int]
A_FEW = 4096  # bytes


@frozen
class ArrayUse:
    """An array of a launch.

    Attributes
    ----------
    parameter : str
        As the kernel calls it.
    reads, writes : bool
        A plain array for a pointer that is not const counts as both, unless it was uninitialised.
    shape, dtype
    address : int
        Where the memory begins that the array is a part of.
    array : array or None
        Kept where nothing was executed, so that no other array gets its address.
    """

    parameter: str
    reads: bool
    writes: bool
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    address: int
    array: Array | None = None

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


@frozen
class RecordedLaunch:
    """What is kept of a launch: kernel, extents, and what it was given.

    Attributes
    ----------
    kernel : Kernel
    grid, block : (x, y, z)
    shared : int
        Bytes of dynamic shared memory.
    arrays : tuple of ArrayUse
    scalars : dict
        Numbers by parameter name.
    events : pair of CuPy events, or None
        Before and after the launch, on a GPU.
    """

    kernel: Any  # a Kernel: its file imports this one
    grid: Extent
    block: Extent
    shared: int
    arrays: tuple[ArrayUse, ...]
    scalars: dict[str, Any]
    events: tuple[Any, Any] | None = None

    @property
    def seconds(self) -> float | None:
        """How long it took on the GPU; waits for its end.  None where nothing was timed."""
        if self.events is None:
            return None
        first, last = self.events
        last.synchronize()
        return float(cupy().cuda.get_elapsed_time(first, last)) / 1e3

    @property
    def bytes(self) -> int:
        """Bytes that must move: each array once for reading, once for writing."""
        return sum(use.bytes * (use.reads + use.writes) for use in self.arrays)

    @property
    def operations(self) -> int | None:
        """Floating-point operations, as the kernel's file states them; see operation_counts.py."""
        return self._count(issued=False)

    @property
    def issued_operations(self) -> int | None:
        """Those that threads execute, beyond the edges of tiles too, where the file states them."""
        return self._count(issued=True)

    def _count(self, issued: bool) -> int | None:
        from tinygraph.cuda.reading.operation_counts import (
            operation_count,  # reads sources: not at import
        )

        numbers = {use.parameter: math.prod(use.shape) for use in self.arrays} | self.scalars
        return operation_count(self.kernel.source, self.kernel.name, numbers, issued)


class Recorder(Runner):
    """Takes down launches, and follows which arrays are still uninitialised."""

    def __init__(self, execute: bool) -> None:
        self.execute = execute
        self.launches: list[RecordedLaunch] = []
        # Arrays that a device gave out uninitialised, by address, and the parts written since.
        self._fresh: dict[int, tuple[weakref.ref[Array], list[tuple[int, int]]]] = {}
        self._kept: list[Array] = []

    def fresh(self, array: Array) -> None:
        self._fresh[_address(array)] = weakref.ref(array), []
        if not self.execute:
            self._kept.append(array)
            if array.nbytes <= A_FEW:
                array[...] = 0  # a loss is looked at: it shall be finite
        self.below.fresh(array)

    def launch(self, launch: Launch) -> None:
        parameters = launch.kernel.signature.parameters
        given = list(zip(parameters, launch.args, launch.values, strict=True))
        if self.execute and launch.on_gpu and launch.events is None:
            launch.events = cupy().cuda.Event(), cupy().cuda.Event()
        self.launches.append(
            RecordedLaunch(
                launch.kernel,
                launch.grid,
                launch.block,
                launch.shared,
                tuple([self._use(p, arg, value) for p, arg, value in given if p.pointer]),
                {p.name: value for p, _, value in given if not p.pointer},
                launch.events,
            )
        )
        if self.execute:
            self.below.launch(launch)

    def _use(self, parameter: KernelParameter, given: Any, value: Any) -> ArrayUse:
        owner = value
        while isinstance(owner.base, type(value)):
            owner = owner.base
        reads, writes = True, not (parameter.const or isinstance(given, In))
        if writes:
            fresh = self._is_fresh(owner, _address(value), value.nbytes)
            reads = isinstance(given, InOut) or not (fresh or isinstance(given, Out))
        return ArrayUse(
            parameter.name,
            reads,
            writes,
            value.shape,
            value.dtype,
            _address(owner),
            None if self.execute else value,
        )

    def _is_fresh(self, owner: Array, first: int, size: int) -> bool:
        """Whether no launch has written these bytes yet; they count as written from now on."""
        known, parts = self._fresh.get(_address(owner), (None, []))
        if known is None or known() is not owner:
            return False
        untouched = all(first + size <= low or high <= first for low, high in parts)
        parts.append((first, first + size))
        return untouched


def _address(array: Any) -> int:
    """Where the elements of an array of numpy or cupy begin."""
    if isinstance(array, np.ndarray):
        return int(array.__array_interface__["data"][0])
    return int(array.data.ptr)


class recording(Around):
    """Take down every launch made inside, in order.

    Parameters
    ----------
    execute : bool
        False: only take down.  Arrays that kernels would have written stay as they are.

    Yields
    ------
    list of RecordedLaunch
        It grows as launches are made.

    Notes
    -----
    It holds for the thread that entered it, and for those that do a part of its work.  A recording
    inside of another one that executes is a part of it.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> x = tg.Tensor(np.zeros((1000, 1000), np.float32), device="emulator")
    >>> with recording(execute=False) as launches:
    ...     y = tg.relu(x)
    >>> [(launch.kernel.name, launch.grid, launch.bytes) for launch in launches]
    [('unary_forward<float, Relu>', (1024, 1, 1), 8000000)]
    """

    def __init__(self, execute: bool = True) -> None:
        self._execute = execute

    def __enter__(self) -> list[RecordedLaunch]:
        return Recorder(self._execute).__enter__().launches


class _Checked(Runner):
    """Knows the arrays that were given out uninitialised and that no kernel has taken yet."""

    def __init__(self) -> None:
        self._fresh: dict[int, weakref.ref[Array]] = {}

    def fresh(self, array: Array) -> None:
        key = id(array)
        # Removed when the array dies, before another object can have its id.
        self._fresh[key] = weakref.ref(array, lambda _: self._fresh.pop(key, None))
        self.below.fresh(array)

    def launch(self, launch: Launch) -> None:
        if not launch.on_gpu:
            launch.checked = True
            given = zip(launch.kernel.signature.parameters, launch.given, launch.open, strict=False)
            launch.given = tuple([self._marked(p, arg, value) for p, arg, value in given])
        self.below.launch(launch)

    def _marked(self, parameter: KernelParameter, given: Any, array: Array) -> Any:
        """What was given; an array that has waited for a kernel to write all of it is an output."""
        if not parameter.pointer or parameter.const or isinstance(given, In):
            return given
        for owner in (array, array.base):
            if owner is not None and self._fresh.pop(id(owner), None) is not None:
                whole = isinstance(owner, np.ndarray) and owner.size == array.size
                return Out(array) if whole and not isinstance(given, InOut) else given
        return given


class checking(Bare):
    """Run every emulator launch inside the `with` under the checker; about 20 times slower.

    An array that `device.empty` of the emulator makes inside counts as an output at the first
    launch that may write it: reading it, or leaving elements out, is then found.  It holds for the
    thread that entered it.

    Raises
    ------
    KernelLaunchError
        From the launch in which the checker finds a mistake; the message holds the report.

    >>> import numpy as np, tinygraph as tg
    >>> with checking():
    ...     y = tg.relu(tg.Tensor(np.ones(4), device="emulator"))
    """

    _runner = _Checked
