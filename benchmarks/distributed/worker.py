"""The ranks of one side: build their training, then do what the first one is told, line by line.

    [mpiexec -n 2] python -m benchmarks.distributed.worker POINT THREADS VARIANT

Variants: "compiled"; "eager"; "buckets", eager with gradients sent while backward goes on.  As with
benchmarks/cpu/worker.py, whose client asks it, requests come on the first rank's standard input,
answers are a line of JSON each.

    losses 3    {"losses": [2.4, 2.3, 2.2]}
    run 5       {"seconds": 0.51, "loss": 2.1, "others": 0.02}   cores that other programs took
    sum 20      {"seconds": 0.01, "gradient": 10240, "sent": 10400}   sums of gradients alone; bytes

Between requests all ranks sleep: MPI waits by spinning, which would take a core from other sides.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tinygraph as tg
from benchmarks.cpu import workloads
from benchmarks.cpu.libraries.tinygraph_steps import AS_IT_STANDS, LOSSES, OPS, blas
from benchmarks.cpu.training import Training, versions
from benchmarks.workloads import Workload, chain, seed_network
from tinygraph import distributed

NAP = 0.001  # seconds
BUCKET_MB = 1.0
STAT = Path("/proc/stat")


def build(point: str) -> Workload:
    """The workload of a point: those of benchmarks/cpu, "digits", and "tiny" for rehearsals.

    >>> build("digits").images.shape, build("tiny").images.shape
    ((16, 1, 8, 8), (8, 1, 6, 6))
    """
    if point == "digits":
        return seed_network(16, 32, 8)
    return seed_network(8, 2, 6) if point == "tiny" else workloads.build(point)


class Ranks:
    """A training on all ranks of this launch."""

    def __init__(self, point: str, threads: int, variant: str) -> None:
        warnings.filterwarnings("error", message=AS_IT_STANDS)
        self.world, workload = distributed.init(), build(point)
        self.parameters = [tg.Parameter(w) for w in workload.weights]
        optimizer = tg.optim.SGD(self.parameters, lr=workload.learning_rate)
        network, loss_of = chain(workload.layers, OPS), LOSSES[workload.loss]
        alone = self.world.size == 1

        def learn(images: Any, labels: Any) -> Any:
            loss = loss_of(network(images, self.parameters), labels)
            if alone:
                optimizer.zero_grad()
            loss.backward()
            if alone:
                optimizer.step()
            return loss

        compiled = tg.compile(learn, threads=threads, fast=False)
        function = compiled if variant == "compiled" else learn
        size = BUCKET_MB if variant == "buckets" else None
        gradients = distributed.data_parallel(function, self.parameters, bucket_mb=size)

        def step() -> Any:
            if alone:
                return function(workload.images, workload.labels)
            loss = gradients(workload.images, workload.labels)
            optimizer.step()
            return loss

        about = f"tinygraph {tg.__version__}, {versions('numpy', 'mpi4py')}, {blas()}"
        self.training = Training(step, float, f"{about}, {self.world!r}, threads {threads}")

    def losses(self, count: int) -> dict[str, Any]:
        return {"losses": [self.training.value(self.training.step()) for _ in range(count)]}

    def run(self, count: int) -> dict[str, Any]:
        """One step to warm the caches, then so many by the clock."""
        self.training.value(self.training.step())
        busy, own, start = busy_seconds(), time.process_time(), time.perf_counter()
        for _ in range(count):
            loss = self.training.step()
        value = self.training.value(loss)
        seconds = time.perf_counter() - start
        mine = np.array([time.process_time() - own])
        spent = float(self.world.all_reduce(mine)[0])
        others = max(0.0, (busy_seconds() - busy - spent) / seconds)
        return {"seconds": seconds, "loss": value, "others": others}

    def sum(self, count: int) -> dict[str, Any]:
        """Sums of as many numbers as all gradients have, and nothing else."""
        gradient = np.ones(sum(p.size for p in self.parameters), np.float32)
        out = np.empty_like(gradient)
        self.world.all_reduce(gradient, out=out)
        start = time.perf_counter()
        for _ in range(count):
            self.world.all_reduce(gradient, out=out)
        seconds = time.perf_counter() - start
        before = self.world.bytes_sent
        self.training.value(self.training.step())
        sent = self.world.bytes_sent - before
        return {"seconds": seconds, "gradient": gradient.nbytes, "sent": sent}

    def told(self) -> tuple[str, int]:
        """The next request of the first rank, on all of them; "" where there is none."""
        request, count = 0, 0
        if self.world.rank == 0:
            name, *numbers = (sys.stdin.readline() or "end 0").split()
            request, count = NAMES.index(name), int(*numbers)
        parts = np.tile(np.array([request, count]), (self.world.size, 1))
        handle = self.world.start_all_to_all(parts)
        while not handle.test():
            time.sleep(NAP)
        request, count = handle.wait()[0].tolist()
        return NAMES[request], count


REQUESTS: dict[str, Callable[[Ranks, int], dict[str, Any]]] = {
    "losses": Ranks.losses, "run": Ranks.run, "sum": Ranks.sum,
}  # fmt: skip
NAMES = ("end", *REQUESTS)


def busy_seconds() -> float:
    """Processor time of all programs since the machine was started; 0 where it does not tell."""
    if not STAT.exists():
        return 0.0
    user, nice, system, _idle, _wait, *more = map(
        int, STAT.read_text(encoding="utf-8").split("\n")[0].split()[1:]
    )
    return (user + nice + system + sum(more[:3])) / os.sysconf("SC_CLK_TCK")


def main(arguments: list[str]) -> int:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer
    point, threads, variant = arguments
    ranks = Ranks(point, int(threads), variant)

    def answer(message: dict[str, Any]) -> None:
        if ranks.world.rank == 0:
            answers.write(json.dumps(message) + "\n")
            answers.flush()

    answer({"about": ranks.training.about})
    while (told := ranks.told())[0] in REQUESTS:
        answer(REQUESTS[told[0]](ranks, told[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
