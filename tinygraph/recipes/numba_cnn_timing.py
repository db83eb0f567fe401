"""numba_cnn_timing: how long an epoch of numba_cnn takes, for batch sizes, filters and devices.

The number of threads of a BLAS library is fixed when it is loaded, so each variant has a process of
its own, which waits between two measurements:

    for each round:  for each size:  for each variant:  train on some images, read the clock

so that whatever else the machine does falls on all variants alike.  A measurement goes over a part
of an epoch and is scaled: epoch = 60,000 / images * seconds.  The images are random numbers of
MNIST's size: how long a step takes does not depend on what they show.

As a program, `python -m tinygraph.recipes.numba_cnn_timing`, this is such a process: it reads lines
of JSON, {"device", "compiled", "filters", "batch_size", "images"}, and answers {"seconds"} or
{"error"}.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tinygraph as tg
from tinygraph.data import ArrayDataset, DataLoader
from tinygraph.device import get_device
from tinygraph.errors import ArgumentError, DeviceError, TinygraphError
from tinygraph.optim import SGD
from tinygraph.recipes.numba_cnn import CLASSES, model
from tinygraph.training import Trainer
from tinygraph.training.environment import THREAD_VARIABLES

SHAPE = (1, 28, 28)
EPOCH = 60_000  # images of MNIST's training part


class Size(NamedTuple):
    """One setting of the network and its batches."""

    filters: int
    batch_size: int


class Variant(NamedTuple):
    """One way to run a step: a device, threads on the CPU, and whether the step is a plan."""

    name: str
    device: str
    threads: int
    compiled: bool = False


@dataclass(frozen=True)
class Sizes:
    """What is varied: batches at one number of filters, and filters at one batch size.

    >>> Sizes((100, 250), 8, (4, 8), 250).all()
    [Size(filters=8, batch_size=100), Size(filters=8, batch_size=250), Size(filters=4, \
batch_size=250)]
    """

    batches: tuple[int, ...]
    at_filters: int
    filters: tuple[int, ...]
    at_batch: int

    def all(self) -> list[Size]:
        """Every size once."""
        by_batch = [Size(self.at_filters, batch) for batch in self.batches]
        by_filters = [Size(filters, self.at_batch) for filters in self.filters]
        return list(dict.fromkeys(by_batch + by_filters))


REPORT = Sizes((100, 250, 500, 1000), 256, (32, 64, 128, 256), 1000)  # those of the report
QUICK = Sizes((25, 50), 8, (4, 8), 50)


def variants() -> tuple[list[Variant], list[str]]:
    """The variants that this machine can run, and a line about each that it cannot.

    A further way to run a step is one more entry here, and a branch in `step_of`.

    >>> variants()[0][0]
    Variant(name='CPU sequential', device='cpu', threads=1, compiled=False)
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found, notes = [Variant("CPU sequential", "cpu", 1)], []
    if cores and cores > 1:
        found.append(Variant("CPU parallel", "cpu", cores))
    else:
        notes.append("CPU parallel: left out, there is one core")
    found.append(Variant("compiled plan", "cpu", cores or 1, compiled=True))
    try:
        get_device("cuda")
        found.append(Variant("cuda", "cuda", 1))
    except DeviceError as error:
        notes.append(f"cuda: left out. {error}")
    return found, notes


def epoch_times(
    sizes: Sizes,
    ways: Sequence[Variant],
    rounds: int,
    images: int | None = None,
    said: Callable[[str], None] = lambda line: None,
) -> list[dict[str, Any]]:
    """Measure every size with every variant, interleaved.

    Parameters
    ----------
    sizes : Sizes
    ways : sequence of Variant
    rounds : int
        Measurements of each.
    images : int, optional
        In one measurement; by default those of the largest batch.
    said : function of a line
        Told about each round.

    Returns
    -------
    list of dict
        `variant`, `filters`, `batch_size`, and of an epoch in seconds: `measured` (one for each
        round), `median`, `low` and `high`; or `error`, where memory did not suffice, say.

    Raises
    ------
    ArgumentError
        Rounds below 1, or fewer images than the largest batch has.
    DeviceError
        A process ended without an answer.
    """
    largest = max(size.batch_size for size in sizes.all())
    images = largest if images is None else images
    if rounds < 1 or images < largest:
        raise ArgumentError(
            "experiment", "rounds and images", f"1 and {largest} at least", f"{rounds} and {images}"
        )
    rows = {
        (size, way): {"variant": way.name, **size._asdict(), "measured": []}
        for size in sizes.all()
        for way in ways
    }
    with ExitStack() as stack:
        workers = {way: stack.enter_context(Worker(way)) for way in ways}
        for number in range(rounds):
            for (size, way), row in _turned(rows, number):
                answer = workers[way].measure(size, images)
                if "error" in answer:
                    row["error"] = answer["error"]
                else:
                    row["measured"].append(answer["seconds"] * EPOCH / images)
            said(f"round {number + 1} of {rounds}")
    return [_with_spread(row) for row in rows.values()]


def _turned(rows: dict[Any, dict[str, Any]], number: int) -> Iterator[tuple[Any, dict[str, Any]]]:
    """All that can be measured; every other round backwards, so that none always comes first."""
    items = list(rows.items())
    for key, row in items if number % 2 == 0 else reversed(items):
        if "error" not in row:
            yield key, row


def _with_spread(row: dict[str, Any]) -> dict[str, Any]:
    measured = row["measured"]
    if not measured:
        return row
    return row | {
        "median": statistics.median(measured),
        "low": min(measured),
        "high": max(measured),
    }


class Worker:
    """A process that measures one variant; a context manager, which ends it."""

    def __init__(self, way: Variant) -> None:
        self.way = way
        threads = {name: str(way.threads) for name in THREAD_VARIABLES}
        here, known = str(Path(tg.__file__).parents[1]), os.environ.get("PYTHONPATH")
        path = os.pathsep.join([here, known] if known else [here])
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **threads, "PYTHONPATH": path},
        )

    def measure(self, size: Size, images: int) -> dict[str, Any]:
        """`seconds`, or `error`."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None and stdout is not None  # both are pipes
        request = {
            "device": self.way.device,
            "compiled": self.way.compiled,
            **size._asdict(),
            "images": images,
        }
        try:
            stdin.write(json.dumps(request) + "\n")
            stdin.flush()
            line = stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise DeviceError(
                "experiment",
                self.way.name,
                "an answer from its process",
                f"it ended with code {self.process.wait()} at {size}",
                "it may have needed more memory than there is: --quick takes little",
            )
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.stdin is not None:
            with suppress(BrokenPipeError):  # it has ended before, with a line still unread
                self.process.stdin.close()  # the end of its input is the end of the process
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process.wait()


# ---- in the process of a variant -------------------------------------------------------------


def random_images(count: int) -> ArrayDataset:
    """Images of MNIST's size, (count, 1, 28, 28) float32, and labels."""
    draws = np.random.default_rng(0)
    images = draws.standard_normal((count, *SHAPE), dtype=np.float32)
    return ArrayDataset(images, draws.integers(0, CLASSES, count))


def step_of(device: str, size: Size, compiled: bool = False) -> Callable[[Any, Any], Any]:
    """The function of (images, labels) that learns from one batch."""
    tg.manual_seed(0)
    network = model(size.filters, SHAPE).to(get_device(device))
    optimizer = SGD(network.named_parameters(), lr=0.1)
    if not compiled:
        return Trainer(network, optimizer, tg.softmax_cross_entropy, progress=False).step

    def step(images: Any, labels: Any) -> tg.Tensor:
        loss = tg.softmax_cross_entropy(network(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return tg.compile(step)


def seconds_of(step: Callable[[Any, Any], Any], loader: DataLoader) -> float:
    """How long it takes to learn from all batches once."""
    started = time.perf_counter()
    for images, labels in loader:
        step(images, labels)  # reads the loss, so that a GPU has ended its work
    return time.perf_counter() - started


def serve(requests: Iterator[str], answer: Callable[[dict[str, Any]], None]) -> None:
    """Answer each line of requests; what was made for a size is kept for its next round."""
    steps: dict[Any, Callable[[Any, Any], Any]] = {}
    data: dict[int, ArrayDataset] = {}
    for line in requests:
        request = json.loads(line)
        device, images, compiled = request["device"], request["images"], request["compiled"]
        size = Size(request["filters"], request["batch_size"])
        try:
            data.setdefault(images, random_images(images))
            loader = DataLoader(data[images], size.batch_size, shuffle=True, device=device)
            if size not in steps:
                steps[size] = step_of(device, size, compiled)
                steps[size](*next(iter(loader)))  # the first is slower: memory, kernels, plans
            answer({"seconds": seconds_of(steps[size], loader)})
        except (TinygraphError, MemoryError) as error:
            answer({"error": str(error) or type(error).__name__})


if __name__ == "__main__":
    serve(iter(sys.stdin.readline, ""), lambda reply: print(json.dumps(reply), flush=True))
