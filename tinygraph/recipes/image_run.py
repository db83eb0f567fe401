"""image_run: what recipes that name the class of an image share, from the data to the result.

A recipe makes a `Setting`: its network, its data and its optimiser.  The functions here train it
into a run folder, try one batch, measure a run again and draw its pictures.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tinygraph as tg
from tinygraph import nn, show
from tinygraph.cuda.emulator.compiler import find_compiler
from tinygraph.data import ArrayDataset, DataLoader, TransformedDataset, datasets
from tinygraph.data.transforms import Transform
from tinygraph.device import Device, get_device
from tinygraph.errors import ArgumentError, CheckpointError, DatasetError, nearest
from tinygraph.optim import Optimizer
from tinygraph.training import Progress, RunFolder, Trainer, evaluate
from tinygraph.training.sealed import reason

TRAIN_SHARE = 0.9  # of the training data; the rest is for validation
EVALUATION_BATCH = 250  # only a matter of memory


class Images(NamedTuple):
    """Standardised images: x = (value - mean) / std, both taken over the training part."""

    training: ArrayDataset
    held_out: ArrayDataset
    test: ArrayDataset
    mean: float
    std: float

    @property
    def shape(self) -> tuple[int, int, int]:
        """(C, H, W) of one image."""
        channels, height, width = self.training.inputs.shape[1:]
        return channels, height, width


class Setting(NamedTuple):
    """Everything that a training works on, before the first batch."""

    network: nn.Sequential
    training: ArrayDataset
    held_out: ArrayDataset
    test: ArrayDataset
    mean: float
    std: float
    optimizer: Callable[[nn.Module], Optimizer]
    augmentation: Transform | None = None  # of the images that are learnt from

    def trainer(self, config: Any, **options: Any) -> Trainer:
        """A Trainer with a fresh optimiser and the cross-entropy."""
        optimizer = self.optimizer(self.network)
        return Trainer(
            self.network,
            optimizer,
            tg.softmax_cross_entropy,
            compile=config.compile,
            tune=config.tune,
            **options,
        )

    def loader(self, config: Any) -> DataLoader:
        """Batches to learn from, in an order that the seed fixes."""
        data: Any = self.training
        if self.augmentation is not None:
            data = TransformedDataset(data, self.augmentation, config.seed)
        return DataLoader(
            data, config.batch_size or 1, shuffle=True, seed=config.seed, device=config.device
        )


def usable_device(name: str, find_compiler: Callable[[], Any] = find_compiler) -> Device:
    """The device of that name; an error now where its first kernel could not be compiled."""
    device = get_device(name)
    if device == "emulator":
        find_compiler()
    return device


def load_images(
    recipe: str, name: str, seed: int, data_dir: str | Path | None = None, download: bool = False
) -> Images:
    """Load a dataset, hold a tenth of the training part out, and standardise everything.

    Raises
    ------
    ArgumentError
        No dataset of images has that name; the message lists those that the recipe takes.
    DatasetError
        Its files are missing or damaged.
    """
    if name not in datasets:
        known = ", ".join(datasets)
        raise ArgumentError(
            recipe,
            "data",
            "a dataset of images with labels",
            repr(name),
            nearest(name, datasets)
            or f"known: {known}; other data have a recipe of their "
            "own, `tinygraph recipes` lists them",
        )
    whole = tg.data.load(name, "train", data_dir, download)
    test = tg.data.load(name, "test", data_dir, download)  # a missing file shows now
    training, held_out = whole.split(TRAIN_SHARE, seed)
    mean, std = float(training.inputs.mean()), float(training.inputs.std())
    for part in (training, held_out, test):
        standardise(part, mean, std)
    return Images(training, held_out, test, mean, std)


def standardise(data: ArrayDataset, mean: float, std: float) -> None:
    """Shift and scale the inputs in place."""
    data.inputs -= mean
    data.inputs /= std


def train_setting(
    recipe: str,
    config: Any,
    setting: Setting,
    run: RunFolder,
    data_dir: str | Path | None = None,
    progress: Progress | None = None,
) -> dict[str, float]:
    """Train, look at the test data once, and leave everything in the run folder.

    A run that was opened goes on where it stopped.

    Returns
    -------
    dict
        `loss` and `accuracy` on the test data.

    Raises
    ------
    DatasetError
        The data are not those that the run began with.
    """
    trainer = setting.trainer(config, run=run, progress=progress, backup_every=config.backup_every)
    if not run.opened:
        run.write_config(
            {
                "recipe": recipe,
                "settings": asdict(config),
                "image_shape": setting.training.inputs.shape[1:],
                "train_share": TRAIN_SHARE,
                "mean": setting.mean,
                "std": setting.std,
                "data_dir": None if data_dir is None else str(Path(data_dir).resolve()),
            }
        )
    elif [setting.mean, setting.std] != run_numbers(run, "mean", "std"):
        raise DatasetError(
            recipe,
            config.data,
            "the training data of the run, whose mean and "
            f"deviation are {run_numbers(run, 'mean', 'std')}",
            [setting.mean, setting.std],
            "resume with the files that the run began with",
        )
    if run.opened:
        trainer.resume()
    run.write_environment(tinygraph=tg.__version__, seeds={"all": config.seed}, command=sys.argv)
    left = None if config.epochs is None else config.epochs - trainer.epoch
    if left is None or left > 0:
        held_out = DataLoader(setting.held_out, EVALUATION_BATCH)
        trainer.fit(setting.loader(config), held_out, left, config.duration)
    result = measure(setting.network, setting.test)
    run.write_result({"test": result})
    return result


def rehearse_setting(config: Any, setting: Setting) -> dict[str, Any]:
    """One batch forward and backward, timed; nothing is learnt and nothing written."""
    summary = setting.network.summary(setting.training.inputs.shape[1:])
    found = setting.trainer(config, progress=False).rehearse(setting.loader(config))
    return {"summary": summary, **found}


def measure(network: nn.Module, test: ArrayDataset) -> dict[str, float]:
    """`loss` and `accuracy` on the test data."""
    return evaluate(network, DataLoader(test, EVALUATION_BATCH), tg.softmax_cross_entropy)


def load_test(run: RunFolder, name: str, data_dir: str | Path | None = None) -> ArrayDataset:
    """The test data of a run, standardised as its training data was."""
    test = tg.data.load(name, "test", data_dir or run.config.get("data_dir"))
    standardise(test, *run_numbers(run, "mean", "std"))
    return test


def draw_run(
    run: RunFolder, title: str, data: str, network: nn.Sequential, weights: Any
) -> Iterator[Path]:
    """The graph of a step and the report, then curves and filters, which need matplotlib.

    `weights` (O, C, KH, KW) are the ones that are drawn.
    """
    images = tg.Tensor(tg.zeros((1, *image_shape(run))), name="images")
    labels = tg.Tensor([0], name="labels")
    network.eval()  # one image has no variance that a batch norm could learn from
    loss = tg.softmax_cross_entropy(network(images), labels)
    try:
        yield show.graph(loss, run.path / "graph.svg")
        yield show.report(_report(run, title, data, network, loss), run.path / "report.html")
        yield show.curves(run.rows(), run.path / "curves.svg")
        yield show.filters(weights, run.path / "filters.png")
    except OSError as error:
        raise CheckpointError(
            "show", str(run.path), "a folder that can be written", reason(error)
        ) from None


def _report(
    run: RunFolder, title: str, data: str, network: nn.Module, loss: tg.Tensor
) -> show.ReportContents:
    """What report.html shows; without samples where the test data is not at hand."""
    samples: dict[str, Any] = {}
    with suppress(DatasetError):
        test = load_test(run, data)
        samples = {"images": test.inputs, "labels": test.labels, "classes": test.classes}
        with tg.no_grad():
            parts = [network(images).numpy() for images, _ in DataLoader(test, EVALUATION_BATCH)]
        samples["predictions"] = np.concatenate(parts).argmax(axis=1)
    return show.ReportContents(
        title=title,
        result=run.result(),
        rows=run.rows(),
        config=run.config,
        environment=run.environment(),
        state=network.state_dict(),
        graph=loss,
        **samples,
    )


def run_numbers(run: RunFolder, *names: str) -> list[float]:
    """Numbers from config.json."""
    numbers = [run.config.get(name) for name in names]
    if not all(isinstance(number, float) and number == number for number in numbers):
        raise CheckpointError(
            "run folder", str(run.path / "config.json"), f"numbers {names}", numbers
        )
    return [float(number or 0.0) for number in numbers]


def image_shape(run: RunFolder) -> tuple[int, int, int]:
    """(C, H, W) from config.json."""
    try:
        channels, height, width = run.config["image_shape"]
        return int(channels), int(height), int(width)
    except (KeyError, TypeError, ValueError):
        raise CheckpointError(
            "run folder",
            str(run.path / "config.json"),
            "image_shape: three numbers",
            run.config.get("image_shape"),
        ) from None
