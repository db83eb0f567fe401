"""checking(): a stretch of code in which every launch on the emulator runs under the checker."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from tinygraph.cuda.launch import Launch
from tinygraph.running import Runner
from tinygraph.shapes import Array


class _Checked(Runner):
    """Knows the arrays that were given out uninitialised and that no kernel has taken yet."""

    def __init__(self) -> None:
        self._fresh: dict[int, weakref.ref[Array]] = {}

    def fresh(self, array: Array) -> None:
        key = id(array)
        # Removed when the array dies, before another object can have its id.
        self._fresh[key] = weakref.ref(array, lambda _: self._fresh.pop(key, None))
        self.below.fresh(array)

    def takes(self, array: Array) -> bool:
        for owner in (array, array.base):
            if owner is not None and self._fresh.pop(id(owner), None) is not None:
                return isinstance(owner, np.ndarray) and owner.size == array.size
        return self.below.takes(array)

    def launch(self, launch: Launch) -> None:
        launch.checked = True
        self.below.launch(launch)


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
