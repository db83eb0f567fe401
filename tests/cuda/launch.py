"""A launch of a kernel under the checker, together with the answer of numpy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tinygraph.cuda import InOut, Kernel, Out, Report

F4, F8, I4, I8 = np.float32, np.float64, np.int32, np.int64
TOLERANCE = {F4: 2e-5, F8: 1e-12}  # of others, no difference at all
BLOCK = 256
# (elements, blocks): one, a full block, edges, a block too many, two turns of the stride loop,
# three of one by packs of four
FLAT = [(1, 1), (256, 1), (300, 2), (300, 3), (600, 1), (2702, 1)]


@dataclass
class Updated:
    """An array that a kernel reads and writes: before, and as it must be afterwards."""

    before: np.ndarray
    after: np.ndarray
    role: str = "inout"  # or "auto": if the kernel only writes it, it must write every element


@dataclass
class Shifted:
    """An argument whose array begins one element past a multiple of 16 bytes."""

    argument: Any


@dataclass
class Launch:
    """One launch and what it must compute.

    An array is an input; `Out(array)` is an output and holds the answer, as does `Updated`.
    """

    file: str
    name: str
    defines: dict[str, Any]
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    label: str = ""
    block: int | tuple[int, ...] = BLOCK
    shared: int = 0

    @property
    def instance(self) -> tuple[Any, ...]:
        """Launches with equal instances share one compiled kernel."""
        return self.file, self.name, tuple(self.defines.items())

    @property
    def threads(self) -> int:
        """How many threads run it."""
        block = (self.block,) if isinstance(self.block, int) else self.block
        grid = (self.grid,) if isinstance(self.grid, int) else self.grid
        return math.prod(block) * math.prod(grid)

    @property
    def function(self) -> str:
        return self.name.split("<")[0]

    def __str__(self) -> str:
        macros = "".join(f" {name}={value}" for name, value in self.defines.items())
        return f"{self.name}{macros} {self.label}"

    def check(self, kernel: Kernel) -> tuple[Report, list[str]]:
        """Launch under the checker: its report, and what differs from numpy's answer."""
        given = self.given()
        report = kernel.check(self.grid, self.block, *given, shared=self.shared)
        return report, self.wrong(kernel, given)

    def given(self) -> list[Any]:
        """Fresh arguments, in numpy."""
        return [_given(argument) for argument in self.arguments]

    def wrong(self, kernel: Kernel, given: list[Any]) -> list[str]:
        """What the arguments of a launch, back in numpy, hold that is not numpy's answer."""
        names = [parameter.name for parameter in kernel.signature.parameters]
        wrong = []
        for name, argument, value in zip(names, self.arguments, given, strict=True):
            want = _answer(argument)
            if want is not None and not _equal(getattr(value, "array", value), want):
                wrong.append(f"{self}: {name} is not numpy's")
        return wrong


def _given(argument: Any) -> Any:
    """A fresh argument: outputs hold nothing of the answer, inputs are copies."""
    if isinstance(argument, Shifted):
        inner = _given(argument.argument)
        marked = isinstance(inner, (Out, InOut))
        return type(inner)(_shifted(inner.array)) if marked else _shifted(inner)
    if isinstance(argument, Out):
        fill = np.nan if argument.array.dtype.kind == "f" else 77
        return Out(np.full_like(argument.array, fill))
    if isinstance(argument, Updated):
        before = argument.before.copy()
        return before if argument.role == "auto" else InOut(before)
    return argument.copy() if isinstance(argument, np.ndarray) else argument


def _shifted(array: np.ndarray) -> np.ndarray:
    moved = np.empty(array.size + 1, array.dtype)[1:].reshape(array.shape)
    moved[...] = array
    return moved


def _answer(argument: Any) -> np.ndarray | None:
    if isinstance(argument, Shifted):
        return _answer(argument.argument)
    if isinstance(argument, Updated):
        return argument.after
    return argument.array if isinstance(argument, Out) else None


def _equal(got: np.ndarray, want: np.ndarray) -> bool:
    tolerance = TOLERANCE.get(want.dtype.type, 0)
    return bool(np.allclose(got, want, tolerance, tolerance, equal_nan=True))


def null(dtype: Any = F4) -> np.ndarray:
    """A null pointer."""
    return np.empty(0, dtype)


@dataclass
class Maker:
    """Makes the launches of one file."""

    file: str
    defines: dict[str, int] = field(default_factory=dict)

    def __call__(
        self, name: str, grid: int | tuple[int, int], *arguments: Any, label: str = ""
    ) -> Launch:
        axes = (grid,) if isinstance(grid, int) else grid
        return Launch(self.file, name, self.defines, axes, arguments, label)
