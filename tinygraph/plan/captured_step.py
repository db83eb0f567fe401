"""capture: a whole training step as one CUDA graph, launched again for every batch of its shape.

    step = tg.cuda.capture(learn)           learn(x, t): gradients, an update, the loss
    for x, t in batches:
        loss = step(x, t)

    1st, 2nd call    eager, in a stream and a memory pool of their own: kernels are compiled, state
                     is made, the pool learns what a step needs
    3rd call         the launches of the step are recorded instead of made; then the graph runs
    later calls      inputs are copied in, varying numbers brought up to date, the graph runs

A graph repeats its launches with the same addresses and the same numbers.  So inputs have a fixed
place, all memory stays with the step, and what changes from step to step lies in device memory: the
learning rate and other `varying` numbers of optimisers, and where the streams of random numbers
begin.  Every call is one step of training, the first ones too, and gives the numbers of eager ones.

    current stream   ... before |                             | after ...    waits for the step
    step's stream               | copy inputs, numbers | step |              waits for the before
    host             write the inputs to pinned memory                       until the last copy

Arrays of the step that are freed outside go back to its own pool, which serves its own stream
alone, and that one waits for the current one before the next call.
"""

from __future__ import annotations

import gc
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

import numpy as np

from tinygraph.base import ArgumentError, GraphError, above
from tinygraph.cuda.graph_memory import GraphMemory
from tinygraph.cuda.pinned import Pinned
from tinygraph.engine import Array, Device, Runner, default_generator, get_device
from tinygraph.engine.device import COPIED

Numbers = Callable[[], tuple[float, ...]]

WARM_UP = 2
_ROOM, _ALIGNED = 1 << 16, 16  # bytes for varying numbers, and the step between them


class Owner(Protocol):
    """Who may have varying numbers: an optimiser."""

    parameters: Any

    def refresh(self) -> None:
        """Take up settings that have changed."""

    def fixed(self, varying: bool = True) -> tuple[list[Array], list[Any]]:
        """The arrays whose addresses, and the settings whose values, a graph has taken over.

        Without varying numbers these are all settings, and the numbers of the state.
        """


class _Captured(Runner):
    """Answers while a step is recorded, and keeps what its graph needs before each launch.

    The varying numbers of the graph lie side by side in device memory, copied in one go.
    """

    reads = False
    graph: Any = None
    outputs: Any = None  # what the function returned
    taken: Any = None  # what `fixed` gave when the graph was made

    def __init__(self, device: Device) -> None:
        self.host = np.zeros(_ROOM, np.uint8)
        self.room: Any = device.empty((_ROOM,), np.uint8)
        self.used = 0
        self.slots: list[tuple[Array, Numbers]] = []
        self.owners: dict[int, Owner] = {}
        self.others: dict[int, Owner] = {}  # optimisers without varying numbers
        self.gradients: list[tuple[Any, Array]] = []  # those that the graph writes, of parameters
        self.host_start, self.start = self._place(2, np.uint64)
        self.first_stream = default_generator.stream
        self.streams = 0  # of random numbers, in one step
        self.held: list[Any] = []  # whose arrays the graph works on

    def _place(self, count: int, dtype: Any) -> tuple[Array, Array]:
        """Room for some numbers, on the host and on the device."""
        first, last = self.used, self.used + count * np.dtype(dtype).itemsize
        if last > _ROOM:
            expected = f"varying numbers within {_ROOM} bytes"
            way_out = "capture a step of fewer parameters, or run it without a graph"
            raise GraphError("capture", "step", expected, "more", way_out)
        self.used = -(-last // _ALIGNED) * _ALIGNED
        return self.host[first:last].view(dtype), self.room[first:last].view(dtype)

    # ---- while the step is recorded

    def stream(self, generator: Any, device: Device) -> tuple[int, int, Any]:
        """Counted from the stream at which each replay begins."""
        if device.on_host:
            found: tuple[int, int, Any] = self.below.stream(generator, device)
            return found
        taken = generator.next_stream() - self.first_stream
        self.streams = max(self.streams, taken + 1)
        return 0, taken, self.start

    def varying(self, device: Device, dtype: Any, numbers: Numbers, owner: Owner) -> Array:
        """A place for varying numbers, with those of the step that is recorded."""
        if device.on_host:
            constant: Array = self.below.varying(device, dtype, numbers, owner)
            return constant
        now = numbers()
        host, there = self._place(len(now), dtype)
        host[...] = now
        self.slots.append((host, numbers))
        self.owners[id(owner)] = owner
        return there

    def update(self, optimizer: Owner) -> None:
        """Numbers that are arguments of launches stay as they are, so that they may not count."""
        _, before = optimizer.fixed(False)
        self.below.update(optimizer)
        if id(optimizer) not in self.owners:
            self.others[id(optimizer)] = optimizer
            if optimizer.fixed(False)[1] != before:
                self.wait("counts on the host, in the optimiser's state: see Optimizer.rates")

    def aside(self, what: str) -> None:
        self.wait(what)

    def write(self, node: Any, array: Any) -> None:
        self.wait(f"changes {node.name or 'a leaf'} in place, outside of an optimiser")

    def hold(self, thing: Any) -> None:
        self.held.append(thing)

    def wait(self, why: str) -> None:
        """A graph holds launches alone: it would repeat no other thing, or a wrong one."""
        way_out = "do it outside the captured function; pass arrays as its inputs"
        if why == COPIED:
            way_out += "; tg.arange, zeros, full, linspace, eye and tril make theirs on the device"
        raise GraphError("capture", "step", "launches alone", f"one that {why}", way_out)

    # ---- before the graph is launched

    def begin(self, first: bool) -> None:
        """Make the numbers of one more step."""
        self.host_start[...] = default_generator.seed, default_generator.stream
        default_generator.stream += self.streams
        if not first:
            for owner in self.owners.values():
                owner.refresh()
            for host, numbers in self.slots:
                host[...] = numbers()
        self.room[: self.used].set(self.host[: self.used])
        for parameter, gradient in self.gradients:  # steps without the graph have others
            parameter.grad = gradient

    def fixed(self) -> tuple[list[Array], list[Any]]:
        """The arrays and settings that the graph has taken over from all optimisers."""
        parts = [owner.fixed() for owner in self.owners.values()]
        parts += [other.fixed(False) for other in self.others.values()]
        return [x for arrays, _ in parts for x in arrays], [s for _, own in parts for s in own]

    def is_stale(self) -> bool:
        """Whether an array was replaced, or a number changed, that the graph has taken over."""
        arrays, settings = self.fixed()
        old, old_settings = self.taken
        same = len(arrays) == len(old) and all(map(operator.is_, arrays, old))
        return not same or settings != old_settings


class CapturedStep:
    """A step that runs as one CUDA graph; made by `capture`."""

    def __init__(self, function: Callable[..., Any], warm_up: int = WARM_UP) -> None:
        self.function = function
        self.warm_up = warm_up
        device: Any = get_device("cuda")
        self._device = device
        if warm_up < 1:
            raise ArgumentError("capture", "warm_up", "an int of at least 1", warm_up)
        self._stream = device.cupy.cuda.Stream(non_blocking=True)
        self._memory = GraphMemory(device.cupy)
        self._pinned = Pinned(device.cupy)
        self.refused = False  # whether a recording has failed
        self._inputs: list[Any] = []  # where the graph reads them
        self._recording: _Captured | None = None
        self._eager_steps = 0

    @property
    def captured(self) -> bool:
        """Whether the next call launches a graph."""
        return self._recording is not None and not self.is_recording

    @property
    def is_recording(self) -> bool:
        """Whether the function is just being recorded."""
        return self._recording is not None and self._recording.graph is None

    def __call__(self, *inputs: Any) -> Any:
        """One step.

        Parameters
        ----------
        *inputs : arrays on the host, or Tensors on the GPU
            Of the shapes and dtypes of the first call.  Others are learnt from without the graph.

        Returns
        -------
        What the function returned.  Tensors of a graph are overwritten by the next call.
        """
        arrays = [_array(x) for x in inputs]
        if not self._fits(arrays):  # in the order and the memory of everything else
            return self.function(*map(self._leaf, map(self._device.from_numpy, arrays)))
        recording = self._recording
        if recording is not None and recording.is_stale():
            recording = self._recording = None
            self._eager_steps, self._memory.recorded = 0, False
        with self._own_stream():
            self._fill(arrays)
            first = recording is None
            if recording is None:
                with self._memory.used():
                    if self._eager_steps < self.warm_up:
                        self._eager_steps += 1
                        return self.function(*map(self._leaf, self._inputs))
                    with _no_collection():
                        recording = self._capture()
            recording.begin(first)
            recording.graph.launch(self._stream)
            return recording.outputs

    # ---- the parts of a call

    @contextmanager
    def _own_stream(self) -> Iterator[None]:
        """The step's stream, in order with the current stream's work before and after."""
        outside = self._device.cupy.cuda.get_current_stream()
        self._stream.wait_event(outside.record())
        try:
            with self._stream:
                yield
        finally:  # of a step that failed too: what is taken back comes after what it has queued
            outside.wait_event(self._stream.record())

    def _fits(self, arrays: Sequence[Any]) -> bool:
        """Whether these have the shapes of the step; the first ones set them."""
        if not self._inputs:
            with self._stream, self._memory.used():
                self._inputs = [self._device.empty(a.shape, a.dtype) for a in arrays]
        return [(a.shape, a.dtype) for a in arrays] == [(a.shape, a.dtype) for a in self._inputs]

    def _fill(self, arrays: Sequence[Any]) -> None:
        inputs = list(zip(self._inputs, arrays, strict=True))
        from_host = [(place, a) for place, a in inputs if not self._device.owns(a)]
        if from_host:
            there, here = zip(*from_host, strict=True)
            self._pinned.send(here, there, self._stream)
        for place, array in inputs:
            if self._device.owns(array):
                place[...] = array

    def _leaf(self, array: Array) -> Any:
        return above.leaf(array, self._device)

    def _capture(self) -> _Captured:
        recording = self._recording = _Captured(self._device)
        self._memory.recorded = True
        try:
            with recording:
                self._stream.begin_capture()
                recording.outputs = self.function(*map(self._leaf, self._inputs))
            recording.graph = self._stream.end_capture()
        except BaseException:
            self._recording, self._memory.recorded, self.refused = None, False, True
            with suppress(RuntimeError):  # which says of a recording that failed just that
                self._stream.end_capture()
            raise
        finally:
            default_generator.stream = recording.first_stream  # each launch takes its own
        recording.taken = recording.fixed()
        for optimizer in (*recording.owners.values(), *recording.others.values()):
            recording.gradients += [(p, p.grad) for p in optimizer.parameters.values()]
        return recording


def capture(function: Callable[..., Any], warm_up: int = WARM_UP) -> CapturedStep:
    """A training step on the GPU that is recorded once and launched as one CUDA graph.

    Parameters
    ----------
    function : callable
        Takes Tensors on the GPU and returns Tensors (or nothing).  It reads no value, and does the
        same launches each time: same mode of the model, same parameters.
    warm_up : int
        Eager steps before the graph is recorded; at least 1, for the optimiser to make its state.

    Returns
    -------
    CapturedStep
        To be called with arrays or Tensors.  Learning rates may change between calls; another
        hyper-parameter, a parameter that was moved or state that was loaded make it record anew.

    Raises
    ------
    DeviceError
        Without CuPy or a GPU.
    ArgumentError
        A warm-up of no step.
    GraphError
        From the call that records: the function read a value, waited, or copied from the host.

    Notes
    -----
    An update in a graph is made even where the loss is not finite.

    Source: NVIDIA, "CUDA C++ programming guide", chapter "CUDA graphs"; CuPy's documentation of
    `Stream.begin_capture`.
    """
    return CapturedStep(function, warm_up)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Garbage waits: of it, pinned memory would wait for its copy, which ends a recording."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _array(value: Any) -> Any:
    held = getattr(type(value), "_array_in", "")
    return getattr(value, held) if held else np.asarray(value)
