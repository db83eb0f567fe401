"""checking(): a stretch of code in which every launch on the emulator runs under the checker."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from tinygraph.cuda.launch import InOut, Launch, Out
from tinygraph.running import Runner
from tinygraph.shapes import Array

if TYPE_CHECKING:
    from tinygraph.cuda.reading.signature import KernelParameter


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
            given = zip(launch.kernel.signature.parameters, launch.args, launch.values, strict=True)
            launch.args = tuple([self._marked(p, arg, value) for p, arg, value in given])
        self.below.launch(launch)

    def _marked(self, parameter: KernelParameter, given: Any, array: Array) -> Any:
        """What was given; an array that has waited for a kernel to write all of it is an output."""
        if not parameter.pointer or parameter.const:
            return given
        for owner in (array, array.base):
            if owner is not None and self._fresh.pop(id(owner), None) is not None:
                whole = isinstance(owner, np.ndarray) and owner.size == array.size
                return Out(array) if whole and not isinstance(given, InOut) else given
        return given


@contextmanager
def checking() -> Iterator[None]:
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
    with _Checked():
        yield
