"""`Memory`: where an op gets everything that may differ between one way of running it and another.

An op asks its `mem` for buffers and random numbers instead of making them.
An eager node answers with fresh numpy arrays.  A plan answers the same sequence of requests with
buffers that it laid out beforehand, and a captured CUDA graph with device memory.  For that to
work, the sequence of requests may depend on specs, hyper-parameters and `needs` only, and in a
kernel's launch on the precision of products; never on values.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from tinygraph.base import above
from tinygraph.base.threads import workers
from tinygraph.engine.device import CPU, Device
from tinygraph.engine.random import Words, default_generator, first_word, uniform
from tinygraph.engine.running import here
from tinygraph.engine.spec import Array, Shape


class Memory:
    """The eager answer: fresh arrays on a device.  `needs` says which input gradients are wanted.

    Under `no_grad`, and where no input requires a gradient, `needs` is all False: an op then saves
    nothing.
    """

    __slots__ = ("broadcast_to", "constant", "contiguous", "device", "empty", "needs", "zeros")
    kept = False  # whether arrays are those of an earlier run

    def __init__(self, device: Device, needs: tuple[bool, ...]) -> None:
        self.device = device
        self.needs = needs
        self.empty = device.empty  # mem.empty(shape, dtype): an uninitialised array
        self.zeros = device.zeros  # mem.zeros(shape, dtype)
        self.broadcast_to = device.broadcast_to  # mem.broadcast_to(array, shape): a view
        self.contiguous = device.contiguous  # mem.contiguous(array): in row-major order
        self.constant = device.constant  # mem.constant(array): a small table from the host

    @property
    def workers(self) -> int:
        """How many threads may share the work of a body."""
        return workers()

    def random(self, shape: Shape, dtype: Any = np.float32) -> Array:
        """Uniform numbers in [0, 1), from a new stream of the default generator.

        The same bits on every device: a kernel makes them where kernels run.
        """
        seed, stream, first, start = self.words(math.prod(shape[1:]), shape[0] if shape else 1)
        if not self.device.runs_kernels:
            return uniform(shape, dtype, seed, stream, first=first)
        out = self.empty(shape, dtype)
        if out.size:
            above.fill_uniform(out, seed, stream, start, first)
        return out

    def words(self, of_row: int = 1, rows: int | None = None) -> Words:
        """A new stream of the same generator, for an op that makes its numbers where it needs them.

        `of_row` words belong to each of `rows`, by default one for each sample: a part of a batch
        begins after those before it.
        """
        seed, stream, start = here.top.stream(default_generator, self.device)
        if start is None and self.device.runs_kernels:
            # A null pointer outside of a capture: no request, so that a plan has the same ones in.
            start = self.device.empty((0,), np.uint64)
        return Words(seed, stream, self._first_word(of_row, rows), start)

    def _first_word(self, of_row: int, rows: int | None) -> int:
        top = here.top
        if not top.first_sample or not top.draws_for_samples():
            return 0
        return first_word(of_row, rows or top.samples or 1, top.first_sample, top.samples)


@lru_cache(maxsize=256)
def eager_memory(needs: tuple[bool, ...], device: Device = CPU) -> Memory:
    """The Memory of eager nodes: it has no state of its own, so one for each `needs` is enough."""
    return Memory(device, needs)
