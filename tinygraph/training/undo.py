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
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tinygraph.base import DeviceError
from tinygraph.engine import Array, Device, default_generator
from tinygraph.nn import Module
from tinygraph.optim import Optimizer


class Undo:
    """Takes back what a step that failed has changed.

    A MemoryError becomes a DeviceError, as on a GPU; every other error goes on as it is.
    """

    def __init__(self) -> None:
        self._updates = False  # whether this step comes to an update
        self._settled: Any = None  # what the last step that succeeded was like
        self._copies: list[tuple[Array, Array]] = []  # an array, and what was in it
        self._states: list[tuple[dict[str, Any], dict[str, Any]]] = []  # the same of a state

    @contextmanager
    def step(self, optimizer: Optimizer) -> Iterator[Undo]:
        """Around a step; `before_forward` and `before_update` are to be called in it.

        Neither is before a graph is launched: that happens, or it does not.
        """
        draws, like, self._updates = default_generator.state_dict(), self._settled, False
        try:
            yield self
            like = _signature(optimizer) if self._updates else like
        except BaseException as error:
            like = None
            for array, copy in self._copies:  # needs no memory
                array[...] = copy
            for state, before in self._states:
                state.clear()
                state.update(before)
            default_generator.load_state_dict(draws)
            optimizer.zero_grad()
            if isinstance(error, MemoryError):
                raise out_of_memory(error) from error
            raise
        finally:
            self._copies, self._states, self._settled = [], [], like

    def before_forward(self, model: Module) -> None:
        """Copy the running statistics, which forward writes."""
        for buffer in model.buffers() if model.training else ():
            self._keep(buffer.device, buffer.value)

    def before_update(self, optimizer: Optimizer) -> None:
        """Copy what an update of this optimiser may leave half done."""
        self._updates = True
        if _signature(optimizer) == self._settled:
            return
        for name, parameter in optimizer.parameters.items():
            if parameter.grad is not None:
                for value in (parameter.value, *optimizer.state[name].values()):
                    if not isinstance(value, (int, float)):
                        self._keep(parameter.device, value)
        self.keep_numbers(optimizer)

    def keep_numbers(self, optimizer: Optimizer) -> None:
        """Of the optimiser's state: the arrays themselves in their place, and none that is new."""
        self._states += [(state, dict(state)) for state in optimizer.state.values()]

    def _keep(self, device: Device, array: Array) -> None:
        self._copies.append((array, device.copy(array)))


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
