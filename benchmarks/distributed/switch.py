"""Data parallel or model parallel: bytes and milliseconds of a step, by batch and width.

    python -m benchmarks.distributed.switch                 2 ranks, one BLAS thread each
    python -m benchmarks.distributed.switch --ranks 4

The network is 1152 - 1152 - H - 10 with ReLU, in float32, by SGD with momentum.  Of its layers only
the one of H features is split.  Bytes are those that the World counts as sent by a rank, the most
of all ranks, in one step; milliseconds are those of the fastest of many steps that take turns, for
whatever else runs on the machine makes some of them slower and none faster.

The last table is of the split layer alone: bytes counted, and bytes by the formula.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tinygraph as tg
from benchmarks.children import run
from benchmarks.report import table
from tinygraph import nn
from tinygraph.training import Trainer

WIDTH, CLASSES = 1152, 10
PLACES = ((64, 4096), (256, 4096), (1024, 1024))  # (N, H)
WAYS = ("data parallel", "scheme a", "scheme b", "scheme c")
ITEM = np.dtype(np.float32).itemsize


def by_formula(way: str, samples: int, features_out: int, ranks: int) -> int:
    """Bytes that a rank sends for a layer of WIDTH input features in a step.

    >>> by_formula("data parallel", 64, 4096, 2), by_formula("scheme a", 64, 4096, 2)
    (18890752, 819200)
    """
    if way == "data parallel":
        numbers = (WIDTH + 1) * features_out
        return 2 * (ranks - 1) * numbers * ITEM // ranks
    return 2 * (ranks - 1) * samples * (ranks * WIDTH + features_out) * ITEM // ranks**2


# ---- on the ranks -------------------------------------------------------------------------------


def wide(way: str, features_out: int) -> nn.Module:
    """The layer in question."""
    if way == "data parallel":
        return nn.Linear(WIDTH, features_out)
    return tg.distributed.Linear(WIDTH, features_out, scheme=way[-1])


def step_of(way: str, samples: int, features_out: int) -> Callable[[], Any]:
    """A training step on one batch."""
    tg.manual_seed(0)
    last = nn.Linear(features_out, CLASSES)
    layers = [nn.Linear(WIDTH, WIDTH), nn.ReLU(), wide(way, features_out), nn.ReLU(), last]
    model = nn.Sequential(*layers)
    optimizer = tg.optim.SGD(model.named_parameters(), lr=1e-3, momentum=0.9)
    shards = tg.distributed.world_size()
    trainer = Trainer(model, optimizer, tg.cross_entropy, progress=False, shards=shards)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((samples, WIDTH), dtype=np.float32)
    return partial(trainer.step, x, rng.integers(0, CLASSES, samples))


def layer_step(way: str, samples: int, features_out: int) -> Callable[[], Any]:
    """Forward and backward of the split layer alone, input gradient included."""
    layer, ranks = wide(way, features_out), tg.distributed.world_size()
    x = tg.Parameter(np.ones((samples // ranks, WIDTH), np.float32))
    return lambda: layer(x).sum().backward()


def bytes_of(step: Callable[[], Any]) -> int:
    """Sent in one step, by the rank that sends most."""
    world = tg.distributed.world()
    before = world.bytes_sent
    step()
    sent = np.array(world.bytes_sent - before)
    return int(tg.distributed.all_reduce(sent, "max"))


def milliseconds(step: Callable[[], Any]) -> float:
    """Of one step, where all ranks begin together; it ends for all with the sum of gradients."""
    tg.distributed.barrier()
    started = time.perf_counter()
    step()
    return 1e3 * (time.perf_counter() - started)


def measured(rounds: int) -> dict[str, Any]:
    """What the ranks find: losses, bytes and milliseconds by place and way."""
    found: dict[str, Any] = {}
    for samples, features_out in PLACES:
        sides = {way: step_of(way, samples, features_out) for way in WAYS}
        sent = {way: bytes_of(side) for way, side in sides.items()}
        times: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(rounds):
            for way, side in sides.items():
                times[way].append(milliseconds(side))
        ms = {way: min(each) for way, each in times.items()}
        losses = {way: side()[0] for way, side in sides.items()}
        alone = {way: bytes_of(layer_step(way, samples, features_out)) for way in WAYS[1:]}
        found[f"{samples}, {features_out}"] = [losses, sent, ms, alone]
    return found


# ---- the launch ---------------------------------------------------------------------------------


def page(found: dict[str, Any], ranks: int) -> str:
    """The tables."""
    steps, layers, apart = [], [], 0.0
    for place, (losses, sent, ms, alone) in found.items():
        cells = [f"{sent[way] / 1e6:.1f} MB, {ms[way]:.0f} ms" for way in WAYS]
        steps.append([place, *cells])
        apart = max([apart, *(abs(losses[w] / losses[WAYS[0]] - 1) for w in WAYS)])
        samples, features_out = map(int, place.split(", "))
        formula = by_formula(WAYS[1], samples, features_out, ranks)
        layers.append([place, f"{formula:,}", *(f"{alone[way]:,}" for way in WAYS[1:])])
    head = [f"N, H at {ranks} ranks", *WAYS]
    formula_head = ["bytes of the layer, N, H", "by the formula", *WAYS[1:]]
    told = f"The losses of the last step differ by {apart:.0e} of them at most."
    return f"{table(head, steps)}\n\n{table(formula_head, layers)}\n\n{told}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.distributed.switch")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=25, help="steps of each way")
    parser.add_argument("--on-ranks", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.on_ranks:
        found = measured(options.rounds)
        if tg.distributed.rank() == 0:
            print(json.dumps(found))
        return 0
    mpiexec = str(Path(sys.executable).parent / "mpiexec")
    command = [mpiexec, "-n", str(options.ranks), sys.executable, "-m", __spec__.name]
    more = ["--on-ranks", f"--rounds={options.rounds}"]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    ended = run([*command, *more], limit=900, variables=threads)
    if ended.returncode:
        print(ended.stderr, file=sys.stderr)
        return 1
    print(page(json.loads(ended.stdout), options.ranks))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
