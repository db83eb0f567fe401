"""numba_cnn: the smallest convolutional network that reads handwritten digits.

    N images of C channels, H x W pixels; D filters; K classes

    x (N, C, H, W)  =  (grey level - mean) / standard deviation, both taken over the training part
    x               ->  conv 3x3, no padding (N, D, H-2, W-2)  ->  ReLU
                    ->  max-pool 2x2 (N, D, (H-2)/2, (W-2)/2)  ->  flatten  ->  linear (N, K)
    loss = softmax cross-entropy, by stochastic gradient descent with learning rate 0.1

On images of 28 x 28 pixels the linear layer sees 13 * 13 * D = 169 D features.  The inputs are
standardised, which the report does not say: on MNIST, three epochs on grey levels from 0 to 1 reach
little more (0.969 on validation data) than one epoch on standardised ones (0.966).

Test accuracy with the defaults, seeds 0 to 4: digits 0.9833 0.9889 0.9805 0.9833 0.9833;
mnist 0.9758 0.9815 0.9776 0.9800 0.9818.

Source: the report "Training a CNN on the GPU using Numba", 2021.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tinygraph as tg
from tinygraph import nn, show
from tinygraph.cuda.emulator.compiler import find_compiler
from tinygraph.data import ArrayDataset, DataLoader
from tinygraph.device import Device, get_device
from tinygraph.errors import CheckpointError, DatasetError, ShapeError, explain
from tinygraph.optim import SGD
from tinygraph.recipes.recipe import Recipe
from tinygraph.training import (
    Profile,
    Progress,
    RunFolder,
    Trainer,
    evaluate,
    profile_training,
)  # fmt: skip
from tinygraph.training.sealed import reason

CLASSES = 10
TRAIN_SHARE = 0.9  # of the training data; the rest is for validation
EVALUATION_BATCH = 250  # only a matter of memory
USUAL = {"digits": (16, 30), "mnist": (100, 3)}  # batch size and epochs where none are given


@dataclass
class Config:
    """Settings.  Without a batch size or epochs: 16 and 30 for digits, 100 and 3 for mnist."""

    data: str = "digits"
    filters: int = 32
    batch_size: int | None = None
    epochs: int | None = None
    lr: float = 0.1
    seed: int = 0
    duration: float | None = None  # seconds, in the place of epochs
    backup_every: float | None = None  # seconds
    device: str = "cpu"  # or "emulator": the .cu kernels on the CPU; or "cuda"

    def __post_init__(self) -> None:
        batch_size, epochs = USUAL.get(self.data, USUAL["digits"])
        self.batch_size = batch_size if self.batch_size is None else self.batch_size
        if self.epochs is None and self.duration is None:
            self.epochs = epochs


def model(filters: int, image_shape: tuple[int, int, int], classes: int = CLASSES) -> nn.Sequential:
    """The network for images of one shape (C, H, W).

    >>> import tinygraph as tg
    >>> model(32, (1, 28, 28))(tg.zeros((5, 1, 28, 28))).shape
    (5, 10)
    """
    channels, height, width = image_shape
    if min(height, width) < 4:
        raise ShapeError(
            explain("numba_cnn", "image_shape", "at least 4 by 4 pixels", f"{height} by {width}")
        )
    features = filters * ((height - 2) // 2) * ((width - 2) // 2)
    return nn.Sequential(
        nn.Conv2d(channels, filters, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(features, classes),
    )


class Setting(NamedTuple):
    """Everything that a training works on, before the first batch."""

    network: nn.Sequential
    training: ArrayDataset
    held_out: ArrayDataset
    test: ArrayDataset
    mean: float
    std: float

    def trainer(self, config: Config, **options: Any) -> Trainer:
        optimizer = SGD(self.network.named_parameters(), lr=config.lr)
        return Trainer(self.network, optimizer, tg.softmax_cross_entropy, **options)

    def loader(self, config: Config) -> DataLoader:
        return DataLoader(self.training, config.batch_size or 1, shuffle=True, seed=config.seed,
                          device=config.device)  # fmt: skip


def set_up(config: Config, data_dir: str | Path | None = None, download: bool = False) -> Setting:
    """Load, split and standardise the data, and make the network."""
    device = _usable_device(config.device)  # an absent one shows before anything is loaded
    whole = tg.data.load(config.data, "train", data_dir, download)
    test = tg.data.load(config.data, "test", data_dir, download)  # a missing file shows now
    training, held_out = whole.split(TRAIN_SHARE, config.seed)
    mean, std = float(training.inputs.mean()), float(training.inputs.std())
    for part in (training, held_out, test):
        _standardise(part, mean, std)
    tg.manual_seed(config.seed)
    network = model(config.filters, whole.inputs.shape[1:]).to(device)
    return Setting(network, training, held_out, test, mean, std)


def train(
    config: Config, run: RunFolder, data_dir: str | Path | None = None, download: bool = False,
    progress: Progress | None = None,
) -> dict[str, float]:  # fmt: skip
    """Train, look at the test data once, and leave everything in the run folder.

    A run that was opened goes on where it stopped.

    Returns
    -------
    dict
        `loss` and `accuracy` on the test data.
    """
    setting = set_up(config, data_dir, download)
    if not run.opened:
        run.write_config(
            {
                "recipe": "numba_cnn",
                "settings": asdict(config),
                "image_shape": setting.training.inputs.shape[1:],
                "train_share": TRAIN_SHARE,
                "mean": setting.mean,
                "std": setting.std,
                "data_dir": None if data_dir is None else str(Path(data_dir).resolve()),
            }
        )
    elif [setting.mean, setting.std] != _numbers(run, "mean", "std"):
        raise DatasetError(
            explain("numba_cnn", config.data, "the training data of the run, whose mean and "
                    f"deviation are {_numbers(run, 'mean', 'std')}", [setting.mean, setting.std],
                    "resume with the files that the run began with")
        )  # fmt: skip
    trainer = setting.trainer(
        config, run=run, progress=progress, backup_every=config.backup_every
    )
    if run.opened:
        trainer.resume()
    run.write_environment(
        tinygraph=tg.__version__, seeds={"all": config.seed}, command=sys.argv
    )
    left = None if config.epochs is None else config.epochs - trainer.epoch
    if left is None or left > 0:
        held_out = DataLoader(setting.held_out, EVALUATION_BATCH)
        trainer.fit(setting.loader(config), held_out, left, config.duration)
    result = _test(setting.network, setting.test)
    run.write_result({"test": result})
    return result


def rehearse(
    config: Config, data_dir: str | Path | None = None, download: bool = False
) -> dict[str, Any]:
    """One batch forward and backward, timed; nothing is learnt and nothing written."""
    setting = set_up(config, data_dir, download)
    summary = setting.network.summary(setting.training.inputs.shape[1:])
    found = setting.trainer(config, progress=False).rehearse(setting.loader(config))
    return {"summary": summary, **found}


def profile(
    config: Config, data_dir: str | Path | None = None, download: bool = False, steps: int = 1,
    arch: str | None = None,
) -> Profile:  # fmt: skip
    """What the kernels of a training step do; what it learns is thrown away."""
    setting = set_up(config, data_dir, download)
    trainer = setting.trainer(config, progress=False)
    return profile_training(trainer, setting.loader(config), steps, arch)


def evaluate_run(
    run: RunFolder, data_dir: str | Path | None = None, best: bool = False, device: str = "cpu"
) -> dict[str, float]:
    """`loss` and `accuracy` of a run's last or best parameters on the test data.

    The device may be another one than that of the training.
    """
    target = _usable_device(device)
    return _test(_load(run, best).to(target), _test_data(run, data_dir))


def draw(run: RunFolder) -> Iterator[Path]:
    """The graph of a step and the report, then curves and filters, which need matplotlib."""
    network = _load(run)
    images = tg.Tensor(tg.zeros((1, *_image_shape(run))), name="images")
    labels = tg.Tensor([0], name="labels")
    loss = tg.softmax_cross_entropy(network(images), labels)
    weight = dict(network.named_parameters())["0.weight"]
    try:
        yield show.graph(loss, run.path / "graph.svg")
        yield show.report(_report(run, network, loss), run.path / "report.html")
        yield show.curves(run.rows(), run.path / "curves.svg")
        yield show.filters(weight, run.path / "filters.png")
    except OSError as error:
        raise CheckpointError(
            explain("show", str(run.path), "a folder that can be written", reason(error))
        ) from None


def _report(run: RunFolder, network: nn.Sequential, loss: tg.Tensor) -> show.ReportContents:
    """What report.html shows; without samples where the test data is not at hand."""
    samples: dict[str, Any] = {}
    with suppress(DatasetError):
        test = _test_data(run)
        samples = {"images": test.inputs, "labels": test.labels, "classes": test.classes}
        with tg.no_grad():
            parts = [network(images).numpy() for images, _ in DataLoader(test, EVALUATION_BATCH)]
        samples["predictions"] = np.concatenate(parts).argmax(axis=1)
    return show.ReportContents(
        title=f"numba_cnn on {recipe.settings_of(run).data}", result=run.result(),
        rows=run.rows(), config=run.config, environment=run.environment(),
        state=network.state_dict(), graph=loss, **samples,
    )  # fmt: skip


def _test_data(run: RunFolder, data_dir: str | Path | None = None) -> ArrayDataset:
    """The test data of a run, standardised as its training data was."""
    name = recipe.settings_of(run).data
    test = tg.data.load(name, "test", data_dir or run.config.get("data_dir"))
    _standardise(test, *_numbers(run, "mean", "std"))
    return test


def _test(network: nn.Module, test: ArrayDataset) -> dict[str, float]:
    return evaluate(network, DataLoader(test, EVALUATION_BATCH), tg.softmax_cross_entropy)


def _load(run: RunFolder, best: bool = False) -> nn.Sequential:
    """The network of a run with its last or its best parameters."""
    network = model(recipe.settings_of(run).filters, _image_shape(run))
    network.load_state_dict(run.load_parameters(best))
    return network


def _usable_device(name: str) -> Device:
    """The device of that name; an error now where its first kernel could not be compiled."""
    device = get_device(name)
    if device == "emulator":
        find_compiler()
    return device


def _standardise(data: ArrayDataset, mean: float, std: float) -> None:
    """Shift and scale the inputs in place."""
    data.inputs -= mean
    data.inputs /= std


def _numbers(run: RunFolder, *names: str) -> list[float]:
    """Numbers from config.json."""
    numbers = [run.config.get(name) for name in names]
    if not all(isinstance(number, float) and number == number for number in numbers):
        raise CheckpointError(
            explain("run folder", str(run.path / "config.json"), f"numbers {names}", numbers)
        )
    return [float(number or 0.0) for number in numbers]


def _image_shape(run: RunFolder) -> tuple[int, int, int]:
    try:
        channels, height, width = run.config["image_shape"]
        return int(channels), int(height), int(width)
    except (KeyError, TypeError, ValueError):
        raise CheckpointError(
            explain("run folder", str(run.path / "config.json"), "image_shape: three numbers",
                    run.config.get("image_shape"))
        ) from None  # fmt: skip


recipe = Recipe(
    name="numba_cnn",
    summary="conv 3x3, ReLU, max-pool 2x2, linear: handwritten digits (digits, mnist)",
    config=Config,
    train=train,
    rehearse=rehearse,
    profile=profile,
    evaluate=evaluate_run,
    metric="accuracy",
    draw=draw,
)
