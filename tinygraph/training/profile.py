"""Profile of a step: what each op takes on the cpu, or each kernel where kernels run.

On the cpu steps with a stopwatch and steps without one take turns; a number is the median over the
steps with one, and the lines add up to the step.  On several threads times are wall time: what two
threads compute at once is half of the time each.

Elsewhere it is launches that count.  Bytes and operations are those of the mathematics: each array
once for reading and once for writing, and the operations that the kernel's file states.  Registers
and occupancy come from NVIDIA's compiler.  On a GPU each launch is timed; on the emulator nothing
is, for its time says nothing about a GPU.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from tinygraph.base import ArgumentError, KernelCompileError, whole
from tinygraph.cuda import RecordedLaunch, recording
from tinygraph.cuda.devices import EMULATOR
from tinygraph.cuda.nvrtc.occupancy import occupancy
from tinygraph.data import DataLoader
from tinygraph.engine import CPU, Device, get_device
from tinygraph.training.evaluation import first_batch
from tinygraph.training.trainer import Trainer
from tinygraph.watch.costs import Cost, CostTable, combined
from tinygraph.watch.kernel_table import cost_of, operations_of, prediction_on
from tinygraph.watch.stopwatch import Stopwatch

WARMING_UP = 2  # steps before: a plan is made in the first, its found are in use from the second
USUAL_STEPS = {"cpu": 10, "emulator": 3, "cuda": 3}
USUAL_ARCH = "sm_90"  # for registers and occupancy, where there is no GPU to ask


@dataclass(frozen=True)
class Profile(CostTable):
    """The ops of a step, or its kernels.

    Attributes
    ----------
    rows : tuple of Cost
        The longest first; where nothing was timed, those that move most bytes.  Below ops stands
        "outside of ops": the wall time in which no thread was in any, Python between them.
    notes : tuple of str
        How it was measured; what is missing, and why.
    device : str
    steps : int
        How many were watched.
    plain_seconds : float or None
        Wall time of a step that was not watched; None on the emulator.
    processor_seconds : float or None
        Of a watched step on the cpu: all threads of the process together, those of BLAS too.
    threads : int or None
        How many were in ops.
    arch : str or None
        What registers and occupancy are for.
    gpu : str or None
        What times are predicted for.
    """

    device: str = "cpu"
    steps: int = 1
    plain_seconds: float | None = None
    processor_seconds: float | None = None
    threads: int | None = None
    arch: str | None = None
    gpu: str | None = None


def profile_steps(
    step: Callable[[], Any],
    device: str | Device = CPU,
    steps: int | None = None,
    arch: str | None = None,
    gpu: Any = None,
) -> Profile:
    """Run a step some times and say what its ops take on the cpu, or its kernels elsewhere.

    Parameters
    ----------
    step : function without arguments
        Eager, or compiled.  On the cpu it is run twice before, and once without a stopwatch for
        each time with one; elsewhere once before, so that nothing is compiled while times are
        taken.
    device : str or Device
        Where the step computes.
    steps : int, optional
        By default 10 on the cpu, and 3 elsewhere.
    arch : str, optional
        For registers and occupancy of kernels: by default the GPU's, on the emulator "sm_90".
    gpu : str, optional
        "h200", ...: predict what each kernel takes there; see cuda/data_sheets.py.  On the
        emulator nothing is executed then, and what the step returns means nothing.

    Raises
    ------
    ArgumentError
        A number of steps below 1, an unknown GPU, `arch` or `gpu` where no kernels run, or a step
        that applies no op to tensors on the cpu.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x, w = tg.zeros((64, 100)), tg.Parameter(tg.zeros((10, 100)))
    >>> profile = profile_steps(lambda: tg.linear(x, w).sum().backward(), steps=3)
    >>> row = next(row for row in profile if row.op == "linear")
    >>> row.calls, row.operations  # forward, and backward for w alone
    (2, 256000)
    >>> abs(sum(row.seconds for row in profile) - profile.seconds) < 1e-12
    True
    """
    device = get_device(device)
    count = USUAL_STEPS[device.name] if steps is None else whole("profile", "steps", steps)
    if device.runs_kernels:
        predicting = prediction_on(gpu)
        usual = predicting.gpu.arch if predicting else USUAL_ARCH
        return _profile_kernels(step, device, count, arch or device.arch or usual, predicting)
    for argument, given in (("arch", arch), ("gpu", gpu)):
        if given is not None:
            expected = "a device that runs kernels: emulator or cuda"
            raise ArgumentError("profile", argument, expected, device.name, "leave it out")
    return _profile_ops(step, count)


def _profile_ops(step: Callable[[], Any], steps: int) -> Profile:
    for _ in range(WARMING_UP):
        step()
    laps, plain = [], []
    for _ in range(steps):
        plain.append(_wall_seconds(step))
        with Stopwatch() as lap:
            step()
        laps.append(lap)
    if not any(call.op for lap in laps for call in lap.calls):
        raise ArgumentError("profile", "step", "one that applies ops to tensors on the cpu", "none")
    outside = Cost(op="outside of ops", calls=0, outside_seconds=median([p.outside for p in laps]))
    processor, threads = median([p.processor for p in laps]), max([p.threads for p in laps])
    notes = [
        f"medians of {steps} steps; processor time of a step {processor * 1e3:.3f} ms; without the "
        f"stopwatch a step takes {median(plain) * 1e3:.3f} ms"
    ]
    if threads > 1:
        notes.insert(
            0,
            f"ops on {threads} threads: times are wall time, what several compute at once is "
            "shared among them",
        )
    rows = (*sorted(_op_rows(laps), key=lambda row: -(row.seconds or 0.0)), outside)
    return Profile(rows, tuple(notes), "cpu", steps, median(plain), processor, threads)


def _op_rows(laps: Sequence[Stopwatch]) -> list[Cost]:
    """A row for each name: medians over the laps, and the operations of the last one."""
    operations = _operations(laps[-1])
    rows = []
    for name in dict.fromkeys(name for lap in laps for _, name in lap.costs):
        none = Cost(op=name, calls=0, operations=0)
        of_laps = [
            combined([cost for (_, n), cost in lap.costs.items() if n == name] or [none])
            for lap in laps
        ]
        rows.append(replace(combined(of_laps, median), operations=operations.get(name, 0)))
    return rows


def _operations(lap: Stopwatch) -> dict[str, float | None]:
    """Of each name in a lap; None where those of one of its calls are not known."""
    calls: dict[str, list[Cost]] = defaultdict(list)
    known: dict[Any, tuple[float | None, float | None]] = {}
    for (phase, name), cost, op, specs, needs in lap.calls:
        if op is not None:
            call = id(op), specs, needs
            if call not in known:
                known[call] = operations_of(op, specs, needs)
            cost = replace(cost, operations=known[call][phase == "backward"])
        calls[name].append(cost)
    return {name: combined(costs).operations for name, costs in calls.items()}


def _profile_kernels(
    step: Callable[[], Any], device: Device, steps: int, arch: str, predicting: Any
) -> Profile:
    execute = not (predicting and device is EMULATOR)  # there is nothing to time
    with recording(execute):
        step()
    with recording(execute) as launches:
        for _ in range(steps):
            step()
    device.synchronize()
    rows, notes = _kernel_rows(launches, steps, arch, predicting)
    taken, plain = sum([row.seconds or 0.0 for row in rows]), None
    if taken:
        plain = _wall_seconds(step, steps, device)
        notes.append(f"a step takes {plain * 1e6:.1f} us, kernels {taken / plain:.0%} of it")
    else:
        notes.append("not timed: the emulator's time says nothing about a GPU")
    rows.sort(key=_costliest)
    if predicting:
        notes += predicting.notes(CostTable(tuple(rows)))
    gpu = predicting.gpu.name if predicting else None
    return Profile(tuple(rows), tuple(notes), device.name, steps, plain, arch=arch, gpu=gpu)


def _costliest(row: Cost) -> tuple[float, float, float, str]:
    return -(row.seconds or 0.0), -(row.predicted_seconds or 0.0), -row.bytes, row.label


def first_batch_step(trainer: Trainer, loader: DataLoader) -> Callable[[], Any]:
    """The trainer's step on the first batch of an epoch, to be called again and again.

    The model is put into training mode, and learns from every call.
    """
    inputs, labels = first_batch(loader)
    trainer.model.train()
    return lambda: trainer.step(inputs, labels)


def _wall_seconds(step: Callable[[], Any], steps: int = 1, device: Device = CPU) -> float:
    """Of a step that nobody watches."""
    device.synchronize()
    started = time.perf_counter()
    for _ in range(steps):
        step()
    device.synchronize()
    return (time.perf_counter() - started) / steps


def _kernel_rows(
    launches: Sequence[RecordedLaunch], steps: int, arch: str, predicting: Any
) -> tuple[list[Cost], list[str]]:
    """A row for each kernel with its macros, and a note where registers are not known."""
    seconds = [launch.seconds for launch in launches]
    if None in seconds:
        seconds = [None] * len(seconds)
    groups: dict[tuple[str, Any], list[tuple[RecordedLaunch, Cost]]] = {}
    for launch, taken in zip(launches, seconds, strict=True):
        key = launch.kernel.name, launch.kernel.source.digest
        more = predicting.of(launch) if predicting else {}
        groups.setdefault(key, []).append((launch, cost_of(launch, kernel_seconds=taken, **more)))
    rows: list[Cost] = []
    notes: list[str] = []
    for group in groups.values():
        # The row is called after the longest: what it is bound by.
        costs = sorted([cost for _, cost in group], key=lambda c: -(c.predicted_seconds or 0.0))
        row = combined(costs, lambda values: sum(values) / steps)
        try:
            row = _with_resources(row, [launch for launch, _ in group], arch)
        except KernelCompileError as error:
            notes = notes or [f"no registers and occupancy: {error}"]
        rows.append(row)
    return rows, notes


def _with_resources(row: Cost, launches: Sequence[RecordedLaunch], arch: str) -> Cost:
    found = launches[0].kernel.resources(arch)
    blocks = {(math.prod(run.block), found.shared + run.shared) for run in launches}
    busy = min([occupancy(arch, t, found.registers, s).share for t, s in blocks])
    return replace(row, registers=found.registers, spills=found.spills, occupancy=busy)
