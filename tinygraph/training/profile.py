"""Profile: what the kernels of a training step are called with, what they move and what they take.

Bytes and operations are those of the mathematics: each array once for reading and once for writing,
and the operations that the kernel's file states.  Registers and occupancy come from NVIDIA's
compiler.  On a GPU each launch is timed; on the emulator nothing is, for its time says nothing
about a GPU.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tinygraph.cuda import RecordedLaunch, recording
from tinygraph.cuda.nvrtc.occupancy import occupancy
from tinygraph.data import DataLoader
from tinygraph.device import Device
from tinygraph.errors import ArgumentError, KernelCompileError
from tinygraph.text_table import aligned, digits, prefix
from tinygraph.training.evaluation import first_batch
from tinygraph.training.trainer import Trainer

USUAL_ARCH = "sm_90"  # for registers and occupancy, where there is no GPU to ask


@dataclass(frozen=True)
class ProfileRow:
    """One kernel with its macros, summed over its launches in one step.

    Attributes
    ----------
    kernel : str
        With template arguments.
    macros : dict of str
    calls : float
        Launches in a step.
    bytes, operations : float
        In a step, in all launches together; `operations` is None where the kernel's file states
        none.
    registers : int or None
        Of a thread; None without NVIDIA's compiler.
    spills : int or None
        Bytes.
    occupancy : float or None
        The share of a multiprocessor's warps that the kernel can keep busy, the smallest over its
        launches.
    seconds : float or None
        In a step; None where nothing was timed.
    """

    kernel: str
    macros: dict[str, str]
    calls: float
    bytes: float
    operations: float | None
    registers: int | None
    spills: int | None
    occupancy: float | None
    seconds: float | None

    @property
    def label(self) -> str:
        return self.kernel + "".join([f" {name}={value}" for name, value in self.macros.items()])


@dataclass(frozen=True)
class Profile:
    """The kernels of a step.

    Attributes
    ----------
    device : str
    arch : str
        What registers and occupancy are for.
    steps : int
        How many steps were looked at.
    rows : tuple of ProfileRow
        The longest first; where nothing was timed, those that move most bytes.
    wall_seconds : float or None
        Of a step, from a run without timers in between; None on the emulator.
    notes : tuple of str
        What is missing, and why.
    """

    device: str
    arch: str
    steps: int
    rows: tuple[ProfileRow, ...]
    wall_seconds: float | None
    notes: tuple[str, ...] = ()

    @property
    def bytes(self) -> float:
        return sum([row.bytes for row in self.rows])

    @property
    def operations(self) -> float:
        return sum([row.operations or 0.0 for row in self.rows])

    @property
    def kernel_seconds(self) -> float | None:
        """The time of a step that kernels take."""
        times = [row.seconds for row in self.rows]
        return None if None in times else sum([t for t in times if t is not None])

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dicts, as JSON takes them."""
        return {
            "device": self.device,
            "arch": self.arch,
            "steps": self.steps,
            "bytes": self.bytes,
            "operations": self.operations,
            "wall_seconds": self.wall_seconds,
            "kernel_seconds": self.kernel_seconds,
            "notes": list(self.notes),
            "kernels": [asdict(row) for row in self.rows],
        }

    def __str__(self) -> str:
        timed = self.kernel_seconds is not None
        units = prefix(self.bytes), prefix(self.operations)
        header = [
            "kernel",
            "calls",
            f"{units[0][1]}B",
            f"{units[1][1]}FLOP",
            "registers",
            "occupancy",
        ]
        header += ["us", "share", "GB/s", "GFLOP/s"] if timed else []
        factors = units[0][0], units[1][0]
        lines = [
            header,
            *[self._cells(row, timed, factors) for row in self.rows],
            self._total(timed, factors),
        ]
        return "\n".join([*aligned(lines), *self.notes])

    def _cells(self, row: ProfileRow, timed: bool, factors: tuple[float, float]) -> list[str]:
        cells = [
            row.label,
            f"{row.calls:g}",
            *_counts(row.bytes, row.operations, factors),
            _or_dash(row.registers, "d"),
            _or_dash(row.occupancy, ".0%"),
        ]
        return cells + (self._times(row.seconds, row.bytes, row.operations) if timed else [])

    def _total(self, timed: bool, factors: tuple[float, float]) -> list[str]:
        calls = sum([row.calls for row in self.rows])
        cells = ["a step", f"{calls:g}", *_counts(self.bytes, self.operations, factors), "", ""]
        times = self._times(self.kernel_seconds, self.bytes, self.operations)
        return cells + (times if timed else [])

    def _times(self, seconds: float | None, moved: float, operations: float | None) -> list[str]:
        if not seconds:
            return ["-"] * 4
        share = seconds / (self.kernel_seconds or math.inf)
        return [
            f"{seconds * 1e6:.1f}",
            f"{share:.1%}",
            f"{moved / seconds / 1e9:.1f}",
            _or_dash(None if operations is None else operations / seconds / 1e9, ".1f"),
        ]


def profile_steps(
    step: Callable[[], Any], device: Device, steps: int = 1, arch: str | None = None
) -> Profile:
    """Run a step some times and say what its kernels did.

    Parameters
    ----------
    step : function without arguments
        It is also run once before, so that nothing is compiled while times are taken.
    device : Device
        One that runs kernels.
    steps : int
    arch : str, optional
        For registers and occupancy: by default the GPU's, on the emulator "sm_90".

    Raises
    ------
    ArgumentError
        The device runs no kernels.
    """
    if not device.runs_kernels:
        raise ArgumentError(
            "profile", "device", "one that runs kernels: 'emulator' or 'cuda'", repr(device.name)
        )
    step()
    with recording() as launches:
        for _ in range(steps):
            step()
    device.synchronize()
    seconds = [launch.seconds for launch in launches]
    timed = bool(seconds) and None not in seconds
    rows, notes = _rows(launches, seconds, steps, arch or device.arch or USUAL_ARCH)
    if not timed:
        notes.append("not timed: the emulator's time says nothing about a GPU")
    wall = _wall_seconds(step, device, steps) if timed else None
    rows.sort(key=lambda row: (-(row.seconds or 0.0), -row.bytes, row.label))
    return Profile(
        device.name, arch or device.arch or USUAL_ARCH, steps, tuple(rows), wall, tuple(notes)
    )


def profile_training(
    trainer: Trainer, loader: DataLoader, steps: int = 1, arch: str | None = None
) -> Profile:
    """The profile of steps on the first batch of an epoch; the model learns from it.

    Parameters and errors are those of `profile_steps`.
    """
    device = next(iter(trainer.model.parameters())).device
    return profile_steps(first_batch_step(trainer, loader), device, steps, arch)


def first_batch_step(trainer: Trainer, loader: DataLoader) -> Callable[[], Any]:
    """The trainer's step on the first batch of an epoch, to be called again and again.

    The model is put into training mode, and learns from every call.
    """
    inputs, labels = first_batch(loader)
    trainer.model.train()
    return lambda: trainer.step(inputs, labels)


def _wall_seconds(step: Callable[[], Any], device: Device, steps: int) -> float:
    """The time of a step without events between its launches."""
    device.synchronize()
    started = time.perf_counter()
    for _ in range(steps):
        step()
    device.synchronize()
    return (time.perf_counter() - started) / steps


def _rows(
    launches: Sequence[RecordedLaunch], seconds: Sequence[float | None], steps: int, arch: str
) -> tuple[list[ProfileRow], list[str]]:
    """A row for each kernel with its macros, and a note where registers are not known."""
    groups: dict[tuple[str, Any], list[tuple[RecordedLaunch, float | None]]] = {}
    for launch, time_taken in zip(launches, seconds, strict=True):
        key = launch.kernel.name, launch.kernel.source.digest
        groups.setdefault(key, []).append((launch, time_taken))
    rows: list[ProfileRow] = []
    notes: list[str] = []
    for group in groups.values():
        of_group = [launch for launch, _ in group]
        resources = None
        try:
            resources = of_group[0].kernel.resources(arch)
        except KernelCompileError as error:
            if not notes:
                notes.append(f"no registers and occupancy: {error}")
        rows.append(_row(of_group, [t for _, t in group], steps, resources, arch))
    return rows, notes


def _row(
    launches: Sequence[RecordedLaunch],
    seconds: Sequence[float | None],
    steps: int,
    resources: Any,
    arch: str,
) -> ProfileRow:
    kernel = launches[0].kernel
    operations = [launch.operations for launch in launches]
    times = [t for t in seconds if t is not None]
    busy = None
    if resources is not None:
        blocks = {(math.prod(run.block), resources.shared + run.shared) for run in launches}
        busy = min([occupancy(arch, t, resources.registers, s).share for t, s in blocks])
    return ProfileRow(
        kernel.name,
        dict(kernel.source.defines),
        len(launches) / steps,
        sum([launch.bytes for launch in launches]) / steps,
        None if None in operations else sum([n or 0 for n in operations]) / steps,
        resources.registers if resources else None,
        resources.spills if resources else None,
        busy,
        sum(times) / steps if len(times) == len(launches) else None,
    )


def _counts(moved: float, operations: float | None, factors: tuple[float, float]) -> list[str]:
    """Bytes and operations in the table's units."""
    done = None if operations is None else operations / factors[1]
    return [digits(moved / factors[0]), digits(done)]


def _or_dash(number: Any, form: str) -> str:
    return "-" if number is None else format(number, form)
