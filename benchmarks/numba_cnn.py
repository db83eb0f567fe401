"""The two experiments of the report that the recipe numba_cnn comes from, and its figures 2 and 3.

1. The time of an epoch over the batch size (256 filters) and over the filters (batch 1000), for the
   CPU with one thread, the CPU with all, a compiled plan, and a GPU where there is one.
2. Accuracy over the epochs of one training, on the data that are learnt from and on the tenth that
   is held out; the test data are looked at once, after the last epoch.

`tinygraph experiment numba_cnn` runs them, from a checkout.  Steps are timed as `make bench` times
them: each measurement by a process of its own (cpu/worker.py), for a BLAS library takes its number
of threads when it is loaded:

    for each round:  for each size:  for each variant:  a step that is not timed, then some that are

so that whatever else the machine does falls on all variants alike.  A measurement goes over a part
of an epoch and is scaled: epoch = 60,000 / images * seconds.

Source: the report "Training a CNN on the GPU using Numba", 2021.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.cpu.client import Client, SideFailed
from benchmarks.cpu.sides import LIBRARIES, Side, environment
from benchmarks.numba_cnn_figures import draw_accuracy, draw_times, table
from tinygraph import data
from tinygraph.base.errors import ArgumentError, DatasetError, DeviceError
from tinygraph.engine.device import get_device
from tinygraph.recipes import numba_cnn
from tinygraph.training import Progress, RunFolder
from tinygraph.training.environment import environment as machine

EPOCH = 60_000  # images of MNIST's training part
OURS = f"{LIBRARIES}.tinygraph_steps"


class Size(NamedTuple):
    """Filters of the network, and images of a batch."""

    filters: int
    batch_size: int


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


def variants() -> tuple[list[Side], list[str]]:
    """The ways to run a step that this machine has, and a line about each that it lacks."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found, notes = [Side("CPU sequential", "", OURS, "eager", threads=1)], []
    if cores and cores > 1:
        found.append(Side("CPU parallel", "", OURS, "eager", threads=cores))
    else:
        notes.append("CPU parallel: left out, there is one core")
    found.append(Side("compiled plan", "", OURS, "compiled", threads=cores or 1))
    try:
        get_device("cuda")
        found.append(Side("cuda", "", OURS, "cuda", threads=1))
    except DeviceError as error:
        notes.append(f"cuda: left out. {error}")
    return found, notes


def experiment(
    run: RunFolder,
    name: str | None = None,
    data_dir: str | Path | None = None,
    download: bool = False,
    quick: bool = False,
    rounds: int = 3,
    images: int | None = None,
    epochs: int = 10,
    said: Callable[[str], None] = print,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run both experiments into a folder.

    Parameters
    ----------
    run : RunFolder
        An empty one.  It gets config.json, result.json and the training's own folder `training`.
    name : str, optional
        The data of the training; by default mnist where its files are found, otherwise digits.
    data_dir, download
        Where the data are, and whether missing files are fetched.
    quick : bool
        Few filters, small batches and one epoch: to see that all runs.
    rounds, images
        See `epoch_times`.
    epochs : int
        Of the training.
    said : function of a line
        Told what goes on.

    Returns
    -------
    dict
        `times` (see `epoch_times`), `epochs` (the rows of the training), `test`, `data`, `images`,
        `notes`, `environment`.  The same is in result.json.
    """
    sizes = QUICK if quick else REPORT
    images = max(sizes.at_batch, *sizes.batches) if images is None else images
    config = numba_cnn.Config(
        _data(name, data_dir, download, said),
        filters=8 if quick else 32,
        batch_size=100,
        epochs=1 if quick else epochs,
    )
    ways, notes = variants()
    for note in notes:
        said(note)
    said(f"times: {images} images in a measurement, scaled to an epoch of {EPOCH}")
    times = epoch_times(sizes, ways, rounds, images, said)
    for line in table(times):
        said(line)
    training = RunFolder(run.path / "training")
    test = numba_cnn.recipe.train(config, training, data_dir, download, progress)
    found = {
        "times": times,
        "epochs": training.rows(),
        "test": test,
        "data": config.data,
        "filters": config.filters,
        "batch_size": config.batch_size,
        "images": images,
        "notes": notes,
        "sizes": vars(sizes),
        "environment": machine(),
    }
    run.write_config(
        {
            "experiment": "numba_cnn",
            "quick": quick,
            "rounds": rounds,
            "images": images,
            "training": vars(config),
        }
    )
    run.write_result(found)
    return found


def draw(folder: Path, found: dict[str, Any]) -> Iterator[Path]:
    """Figures 2 and 3 of what `experiment` found."""
    yield draw_times(found["times"], found["sizes"], folder / "times.svg")
    yield draw_accuracy(found["epochs"], folder / "accuracy.svg")


def _data(
    name: str | None, data_dir: str | Path | None, download: bool, said: Callable[[str], None]
) -> str:
    """The data that were asked for; otherwise MNIST where it is found, and digits."""
    if name is not None:
        data.load(name, "train", data_dir, download)  # missing files are said first
        return name
    try:
        data.mnist("test", data_dir, download)
        return "mnist"
    except DatasetError as error:
        if data_dir is not None:  # a folder was named: what is wrong with it is the answer
            raise
        said(f"{error}. Until then the training is one on the digits that tinygraph brings along")
        return "digits"


# ---- times --------------------------------------------------------------------------------------


def epoch_times(
    sizes: Sizes,
    ways: Sequence[Side],
    rounds: int,
    images: int | None = None,
    said: Callable[[str], None] = lambda line: None,
) -> list[dict[str, Any]]:
    """Measure every size with every variant, interleaved.

    Parameters
    ----------
    sizes : Sizes
    ways : sequence of Side
    rounds : int
        Measurements of each.
    images : int, optional
        In one measurement, rounded down to whole batches; by default those of the largest batch.
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
    """
    largest = max(size.batch_size for size in sizes.all())
    images = largest if images is None else images
    if rounds < 1 or images < largest:
        raise ArgumentError(
            "experiment", "rounds and images", f"1 and {largest} at least", f"{rounds} and {images}"
        )
    rows: dict[tuple[Size, Side], dict[str, Any]] = {
        (size, way): {"variant": way.name, **size._asdict(), "measured": []}
        for size in sizes.all()
        for way in ways
    }
    for number in range(rounds):
        order = list(rows) if number % 2 == 0 else list(reversed(rows))  # none always comes first
        for size, way in order:
            row = rows[size, way]
            if "error" in row:
                continue
            try:
                row["measured"].append(seconds_of_an_epoch(size, way, images))
            except SideFailed as reason:
                row["error"] = str(reason)
        said(f"round {number + 1} of {rounds}")
    return [_with_spread(row) for row in rows.values()]


def seconds_of_an_epoch(size: Size, way: Side, images: int) -> float:
    """Start a process, let it take the steps of so many images, and scale their time."""
    steps = images // size.batch_size
    point = f"w1:{size.batch_size}:{size.filters}"
    threads = way.threads or 1
    arguments = [way.module, way.variant, point, str(threads)]
    command = [sys.executable, "-m", "benchmarks.cpu.worker", *arguments]
    client = Client(command, environment(way, threads, native_blas=False))
    try:
        seconds = float(client.ask(f"run {steps}")["seconds"])
    finally:
        client.close()
    return seconds * EPOCH / (steps * size.batch_size)


def _with_spread(row: dict[str, Any]) -> dict[str, Any]:
    measured = row["measured"]
    if not measured:
        return row
    return row | {
        "median": statistics.median(measured),
        "low": min(measured),
        "high": max(measured),
    }
