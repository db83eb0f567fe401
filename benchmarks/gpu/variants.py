"""Choices that only a GPU can judge: what tinygraph chooses beside the other ways that there are.

The ways of a case take turns, and nothing is timed before all of them agree.  Where another one is
faster, the choice has lost: `choose_gemm`, `choose_convolution`, a rewrite, or `capture`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.gpu import ours
from benchmarks.gpu.chosen import Pass, Side, Sides, gemm_cuts, gemm_steps, products, stage_sides
from benchmarks.gpu.page import Result
from benchmarks.gpu.room import Room
from benchmarks.gpu.smoke import difference
from benchmarks.report import Table
from benchmarks.timing import Ratio
from benchmarks.workloads import Workload, seed_network

TITLE = "Choices beside their variants"
BOUND = 1e-3  # of the largest number of a result: sums of float32 in another order
FASTER = 1.05  # so many times as fast is more than the spread of rounds
LOSSES = 3  # of steps, which must agree

Case = tuple[str, Callable[[], Sides]]  # what is computed; its sides, the chosen one first


def run(room: Room) -> Result:
    result = Result(TITLE)
    head = ["what", "way", "ms", "times as fast as the choice"]
    for title, cases in groups(room).items():
        shown = Table(head)
        result.blocks += [f"**{title}**", shown]
        for what, make in cases:
            try:
                shown.rows += _compare(room, result, what, make())
            except Exception as error:
                text = " ".join(str(error).split())[:300]
                result.left_out.append(f"{what}: {type(error).__name__}: {text}")
                result.failed = "a way broke, or disagrees with the choice"
            room.tell(result)
    if room.device != "cuda":
        result.left_out.append("captured steps: a CUDA graph needs CuPy")
    return result


def groups(room: Room) -> dict[str, list[Case]]:
    """What is compared, by the choice that it judges."""
    sizes = room.choose([512, 1024, 2048, 4096], [1024, 4096], [40])
    long_sums = room.choose(
        [(40, 10, 60_000), (256, 128, 65_536)], [(40, 10, 60_000)], [(4, 3, 3072)]
    )
    found = {
        "Steps of GEMM, float32": [_steps_of_gemm(room, n) for n in sizes],
        "Sums in chunks, or in one piece": [_cut_product(room, *size) for size in long_sums],
        "Tiles of implicit convolution": [],
        "Backward of the seed network": list(_stages(room)),
    }
    for one in _passes(room):
        found["Tiles of implicit convolution"].append(_tiles(room, one))
        if one.chosen.chunks > 1:
            found["Sums in chunks, or in one piece"].append(_cut_pass(room, one))
    if room.device == "cuda":
        found["Steps of the seed network as one CUDA graph"] = list(_captured(room))
    return found


def _compare(room: Room, result: Result, what: str, sides: Sides) -> list[list[str]]:
    """A row for each side, the chosen one first."""
    chosen = next(iter(sides))
    want = sides[chosen].results()
    for name, side in sides.items():
        worst = difference(side.results(), want) if name != chosen else 0.0
        if not worst < BOUND:
            raise ArithmeticError(f"{name} differs from {chosen} by {worst:.2g}")
    times = room.in_turns({name: side.run for name, side in sides.items()})
    rows = []
    for name, taken in times.items():
        ratio = Ratio.of(taken, times[chosen])
        is_chosen = name == chosen
        word = "the choice" if is_chosen else ratio.text()
        rows.append([what, name, taken.text(), word])
        if not is_chosen and ratio.median > FASTER:
            result.lost.append(f"{what}: {name} is {ratio.median:.2f} times as fast as {chosen}")
    return rows


# ---- the cases ----------------------------------------------------------------------------------


def _steps_of_gemm(room: Room, n: int) -> Case:
    sides = lambda: products(n, n, n, gemm_steps(n, n, n), room.device)  # noqa: E731
    return f"product {n} x {n} x {n}", sides


def _cut_product(room: Room, m: int, n: int, k: int) -> Case:
    return f"product {m} x {n}, sum of {k}", lambda: products(
        m, n, k, gemm_cuts(m, n, k), room.device
    )


def _passes(room: Room) -> list[Pass]:
    """Layers of a VGG-like network and the seed network's, in all three passes."""
    full = [
        ((64, 32, 32, 32), (32, 32, 3, 3)),
        ((64, 64, 16, 16), (64, 64, 3, 3)),
        ((64, 128, 8, 8), (128, 128, 3, 3)),
        ((64, 64, 56, 56), (64, 64, 3, 3)),
    ]
    names = ("forward", "input_gradient", "weight_gradient")
    shapes = room.choose(full, full[1:3], [((1, 44, 3, 3), (2, 44, 3, 3))])
    return [Pass(name, *shape) for shape in shapes for name in names]


def _tiles(room: Room, one: Pass) -> Case:
    return _of(one), lambda: one.sides(one.tiles(), room.device)


def _cut_pass(room: Room, one: Pass) -> Case:
    return _of(one), lambda: one.sides(one.cuts(), room.device)


def _of(one: Pass) -> str:
    (n, c, h, w), filters = one.x, one.w[0]
    return f"conv {n}x{c}x{h}x{w}, {filters} filters, {one.name.replace('_', ' ')}"


def _stages(room: Room) -> Iterator[Case]:
    for batch, filters in room.choose(
        [(1000, 256), (100, 256), (1000, 32)], [(1000, 256)], [(2, 4)]
    ):
        size = 8 if room.rehearse else 28
        what = f"batch {batch}, {filters} filters"
        yield what, lambda b=batch, f=filters, s=size: stage_sides((b, 1, s, s), f, 10, room.device)


def _captured(room: Room) -> Iterator[Case]:
    sizes = room.choose([(1000, 256), (100, 256), (10, 256)], [(100, 256)], [])
    networks = [seed_network(2, 4, size=8)] if room.rehearse else [seed_network(*s) for s in sizes]
    for network in networks:
        for way in ("eager", "compiled"):
            yield f"{network.name}, {way}", lambda n=network, w=way: _steps(n, w, room.device)


def _steps(network: Workload, way: str, device: str) -> Sides:
    """Steps replayed as a graph, which is what a Trainer does, and launch by launch."""
    steps = ours.steps(network, device)

    def side(step: ours.Step) -> Side:
        return Side(step, lambda: [np.array([float(step().item()) for _ in range(LOSSES)])])

    return {"captured": side(steps[f"{way}, captured"]), "launch by launch": side(steps[way])}
