"""Undo: a step of a training happens whole, or not at all.

    forward     writes running statistics and takes random numbers      copied before each step
    backward    writes gradients                                        forgotten
    update      writes parameters and the optimiser's state             copied where it may fail

An update needs memory only where it makes state or takes up other hyper-parameters; every later one
works in arrays that are there.  So parameters are copied before the first step, and before a step
that differs from the last one in its settings or in which parameters have gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tinygraph.device import Device
from tinygraph.errors import DeviceError
from tinygraph.nn import Module
from tinygraph.optim import Optimizer
from tinygraph.random import default_generator
from tinygraph.shapes import Array

Restore = Callable[[], None]


class Undo:
    """Takes back what a step that failed has changed.

    A MemoryError becomes a DeviceError, as on a GPU; every other error goes on as it is.
    """

    def __init__(self) -> None:
        self._settled: Any = None  # what the last step that succeeded was like
        self._restore: list[Restore] = []

    @contextmanager
    def step(self, model: Module, optimizer: Optimizer) -> Iterator[Undo]:
        """Around a step; `before_update` is to be called in it."""
        self._restore = []
        like = None
        try:
            self._keep_buffers(model)
            yield self
            like = _signature(optimizer)
        except BaseException as error:
            for restore in self._restore:
                restore()
            optimizer.zero_grad()
            if isinstance(error, MemoryError):
                raise out_of_memory(error) from error
            raise
        finally:
            self._restore = []
            self._settled = like

    def before_update(self, optimizer: Optimizer) -> None:
        """Copy what an update of this optimiser may leave half done."""
        if _signature(optimizer) == self._settled:
            return
        for name, parameter in optimizer.parameters.items():
            if parameter.grad is None:
                continue
            self._keep(parameter.device, parameter.value)
            for value in optimizer.state[name].values():
                if not isinstance(value, (int, float)):
                    self._keep(parameter.device, value)
        self.keep_numbers(optimizer)

    def keep_numbers(self, optimizer: Optimizer) -> None:
        """Of the optimiser's state: the arrays themselves in their place, and none that is new."""
        before = [(state, dict(state)) for state in optimizer.state.values()]

        def restore() -> None:
            for state, values in before:
                state.clear()
                state.update(values)

        self._restore.append(restore)

    def _keep_buffers(self, model: Module) -> None:
        if model.training:
            for buffer in model.buffers():
                self._keep(buffer.device, buffer.value)
        draws = default_generator.state_dict()
        self._restore.append(lambda: default_generator.load_state_dict(draws))

    def _keep(self, device: Device, array: Array) -> None:
        """Copy an array now; write the copy back, where no memory is needed, if the step fails."""
        copy = device.copy(array)

        def restore() -> None:
            array[...] = copy

        self._restore.append(restore)


def _signature(optimizer: Optimizer) -> Any:
    """What tells whether an update finds everything that it needs: settings, gradients, state."""
    settings = [
        {key: value for key, value in group.items() if key != "params"}
        for group in optimizer.groups
    ]
    made = [
        (p.grad is None, p.dtype, len(optimizer.state[name]))
        for name, p in optimizer.parameters.items()
    ]
    return settings, made


def out_of_memory(error: MemoryError) -> DeviceError:
    """The error for a step that found no memory: numpy tells shape and dtype of what it wanted."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if shape is None or dtype is None:
        room = "room for one more array"
    else:
        size = math.prod(shape) * np.dtype(dtype).itemsize
        room = f"room for {size:,} bytes, an array {np.dtype(dtype)}{list(shape)}"
    return DeviceError(
        "Trainer",
        "memory",
        room,
        str(error) or "none left",
        "use a smaller batch; the step was taken back, parameters are as before",
    )
