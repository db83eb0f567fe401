"""A launch: a kernel with grid, block and arguments.

Of a launch that is made again and again most is the same each time: a `BoundLaunch` has it checked
once, and checks what it is called with.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, TypeAlias

from tinygraph.cuda.extents import Extent, check_block, check_grid, check_shared
from tinygraph.engine import here

Kernel: TypeAlias = Any  # of kernel.py, which stands above this file and makes launches


class BoundLaunch:
    """A kernel with grid, block and its last arguments: call it with the first ones to launch it.

    `Kernel.bind` makes it.  A function of shapes that returns one may keep what it returned.

    Attributes
    ----------
    kernel : Kernel
    grid, block : (x, y, z)
    numbers : list
        The last arguments, as Python numbers.
    scalars
        What is known of the numbers that are left; see `ArgumentList`.
    shared : int
        Bytes of dynamic shared memory.
    by_value : list or None
        The numbers as CuPy takes them, from the first launch on a GPU on.

    Raises
    ------
    KernelLaunchError
        For a grid, a block, shared memory or numbers that do not fit.
    """

    __slots__ = ("block", "by_value", "grid", "kernel", "numbers", "scalars", "shared")

    def __init__(
        self, kernel: Kernel, grid: Any, block: Any, numbers: Sequence[Any] = (), shared: Any = 0
    ) -> None:
        self.kernel = kernel
        self.numbers, self.scalars = kernel.arguments.bound(numbers)
        self.grid = check_grid(kernel.name, grid)
        self.block = check_block(kernel.name, block, kernel.signature.launch_bounds)
        self.shared = check_shared(kernel.name, shared)
        self.by_value: list[Any] | None = None

    def __call__(self, *args: Any) -> None:
        """Launch it; arguments and errors are those of a launch of the kernel."""
        here.top.launch(Launch(self, args))


class Launch:
    """One launch of a kernel: what every runner is handed; see `running.Eager.launch`.

    Attributes
    ----------
    bound : BoundLaunch
        Kernel, grid, block and the last arguments.
    given : tuple
        The first arguments, as they were given.
    open : list
        These without marks, scalars as Python numbers.
    args : tuple
        All arguments, as they were given.
    values : list
        These without marks, scalars as Python numbers.
    on_gpu : bool
        Whether the arrays are cupy's.
    checked : bool
        Whether the emulator is to run it under the checker; a runner may say so.
    events : pair of CuPy events, or None
        A GPU notes its begin and end there; a runner may give them.
    waits : bool
        Whether the host is to wait until a GPU has run it, so that an error names this launch and
        no later one; a runner may say so.

    Raises
    ------
    KernelLaunchError
        For arguments that do not fit.
    """

    checked = waits = False
    events: Any = None

    def __init__(self, bound: BoundLaunch, given: tuple[Any, ...]) -> None:
        self.bound, self.given, self.kernel = bound, given, bound.kernel
        self.open, self.on_gpu = self.kernel.arguments.first(given, bound.scalars)

    @property
    def grid(self) -> Extent:
        return self.bound.grid

    @property
    def block(self) -> Extent:
        return self.bound.block

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory."""
        return self.bound.shared

    @property
    def args(self) -> tuple[Any, ...]:
        return (*self.given, *self.bound.numbers)

    @property
    def values(self) -> list[Any]:
        return [*self.open, *self.bound.numbers]


class _Marked:
    """An array with a word on how the kernel uses it."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.array!r})"


class In(_Marked):
    """An input: the kernel only reads it, though its pointer may not be const.

    The checker reports a write to it.  A plain launch takes it as the array itself.
    """

    __slots__ = ()


class Out(_Marked):
    """An output: its contents are uninitialised, and the kernel writes every element.

    The checker reports elements that are read before they are written, or never written.  A plain
    launch takes it as the array itself.

    >>> import numpy as np
    >>> Out(np.zeros(2)).array
    array([0., 0.])
    """

    __slots__ = ()


class InOut(_Marked):
    """An array that is initialised and that the kernel may write in part."""

    __slots__ = ()


MARKS = frozenset((In, Out, InOut))


def is_cupy(value: Any) -> bool:
    """Whether this is an array of cupy; without cupy in memory, nothing is."""
    module = sys.modules.get("cupy")
    return module is not None and isinstance(value, module.ndarray)
