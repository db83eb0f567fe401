"""Training steps beside torch.compile: a section of its own, for compiling takes minutes."""

from __future__ import annotations

from benchmarks.gpu import steps
from benchmarks.gpu.page import Result
from benchmarks.gpu.room import Room
from benchmarks.gpu.torch_side import COMPILED
from benchmarks.workloads import mlp, seed_network

TITLE = "Training steps beside torch.compile"


def run(room: Room) -> Result:
    if room.rehearse:
        result = steps.measured(room, TITLE, [seed_network(2, 4, size=8)], {})
        result.left_out.append("torch.compile: not rehearsed, compiling takes minutes on a CPU")
        return result
    sizes = room.choose([(1000, 256), (100, 256), (1000, 32)], [(1000, 256)], [])
    return steps.measured(room, TITLE, [*(seed_network(*s) for s in sizes), mlp()], COMPILED)
