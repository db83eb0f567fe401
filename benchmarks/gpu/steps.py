"""Training steps of whole networks beside PyTorch.

Every side must agree with the numpy bodies of tinygraph on the losses of three steps before it is
timed.  A side that breaks or disagrees is left out aloud, and the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.gpu import ours
from benchmarks.gpu.page import Result
from benchmarks.gpu.room import Room
from benchmarks.networks import Network
from benchmarks.report import Plot, Table
from benchmarks.timing import Ratio, Times
from benchmarks.workloads import Workload, mlp, seed_network, vgg

TITLE = "Training steps beside PyTorch eager"
AIMS = {"eager": 10.0, "compiled": 4.0}  # on the seed network: times as fast as PyTorch
AGREE = {ours.STRICT: 1e-3, ours.TF32: 2e-2}  # relative difference of the losses

Step = Callable[[], Any]


def workloads(room: Room) -> list[Workload]:
    if room.rehearse:
        stages = [seed_network(batch, 4, size=8) for batch in (2, 4)]
        return [*stages, mlp(4, 8, 6), vgg(2, (2,), size=4)]
    full = [(100, 256), (250, 256), (500, 256), (1000, 256), (1000, 128), (1000, 64), (1000, 32)]
    sizes = room.choose(full, [(100, 256), (1000, 256), (1000, 32)], [])
    return [*(seed_network(*size) for size in sizes), mlp(), vgg()]


def run(room: Room) -> Result:
    return measured(room, TITLE, workloads(room), {})


def measured(
    room: Room, title: str, networks: Sequence[Workload | Network], modes: Mapping[str, str]
) -> Result:
    """Steps of these networks beside PyTorch's eager ones, and those of modes of torch.compile."""
    result = Result(title)
    if room.torch is None:
        result.left_out.append("PyTorch is not there, so the tables have our times only")
    for precision in (ours.STRICT, ours.TF32):
        if not ours.has(precision):
            result.left_out.append(ours.NO_TF32)
            continue
        head = ["network", "side", "ms a step", "PyTorch eager / this"]
        shown = Table([*head, "PyTorch compiled / this"] if modes else head)
        result.blocks += [f"**{precision}**", shown]
        lines: dict[str, list[tuple[float, float]]] = {}
        for workload in networks:
            with ours.precision(precision):
                times = _times(room, result, workload, precision, modes)
            shown.rows += _rows(result, workload, precision, times, modes)
            room.tell(result)
            if _filters(workload) and _filters(workload) == _filters(networks[0]):
                for side, taken in times.items():
                    point = (float(len(workload.labels)), taken.median * 1e3)
                    lines.setdefault(side, []).append(point)
        if not modes and any(len(points) > 1 for points in lines.values()):
            name = "steps-tf32" if precision == ours.TF32 else "steps-float32"
            title = f"Seed network, {_filters(networks[0])} filters, {precision}"
            result.plots.append(Plot(name, title, "batch", "ms a step", lines, log_y=True))
    return result


def _times(
    room: Room,
    result: Result,
    workload: Workload | Network,
    precision: str,
    modes: Mapping[str, str],
) -> dict[str, Times]:
    """Times of each side that works, ours first."""
    want = _losses(ours.steps(workload, "cpu")["eager"])
    makers: dict[str, Callable[[], Step]] = {
        f"tinygraph {name}": lambda step=step: step
        for name, step in ours.steps(workload, room.device).items()
    }
    if room.torch is not None:
        makers["PyTorch eager"] = lambda: room.torch.step(workload, None)
        for name, mode in modes.items():
            makers[f"PyTorch {name}"] = lambda mode=mode: room.torch.step(workload, mode)

    def timed() -> dict[str, Times]:
        sides = {}
        for name, make in makers.items():
            try:
                step = make()
                np.testing.assert_allclose(_losses(step), want, rtol=AGREE[precision])
            except Exception as error:
                text = " ".join(str(error).split())[:300]
                line = f"{workload.name}, {precision}, {name}: {type(error).__name__}: {text}"
                result.left_out.append(line)
                if name.startswith("tinygraph"):
                    result.failed = "a step of ours broke or disagrees with numpy"
                continue
            sides[name] = step
        return room.in_turns(sides)

    if room.torch is None:
        return timed()
    with room.torch.precision(precision == ours.TF32):
        return timed()


def _filters(network: Workload | Network) -> int:
    """Those of a seed network; 0 for another network."""
    is_seed = isinstance(network, Workload) and network.is_seed_network
    return len(network.weights[0]) if is_seed else 0


def _losses(step: Step) -> list[float]:
    return [float(step().item()) for _ in range(3)]


def _rows(
    result: Result,
    workload: Workload | Network,
    precision: str,
    times: dict[str, Times],
    modes: Mapping[str, str],
) -> list[list[str]]:
    """A row for each side, with its ratios to PyTorch eager and to the faster compiled one."""
    compiled = [times[side] for name in modes if (side := f"PyTorch {name}") in times]
    peers = {"eager": times.get("PyTorch eager")}
    if modes:
        peers["compiled"] = min(compiled, key=lambda taken: taken.median, default=None)
    rows = []
    best: dict[str, float] = {}
    for side, taken in times.items():
        cells = [workload.name, side, taken.text()]
        for name, peer in peers.items():
            ratio = Ratio.of(taken, peer) if peer is not None else None
            cells.append(ratio.text() if ratio else "left out")
            if ratio and side.startswith("tinygraph"):
                best[name] = max(best.get(name, 0.0), ratio.median)
        rows.append(cells)
    for name, reached in best.items():
        aim = AIMS[name] if _filters(workload) else 1.0
        what = f"{workload.name}, {precision}, times as fast as PyTorch {name}"
        result.aim(what, reached, aim)
    return rows
