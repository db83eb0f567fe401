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

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tinygraph as tg
from tinygraph import nn
from tinygraph.cuda.emulator.compiler import find_compiler
from tinygraph.device import Device
from tinygraph.errors import ShapeError
from tinygraph.optim import SGD
from tinygraph.recipes.image_run import (
    Setting,
    draw_run,
    image_shape,
    load_images,
    load_test,
    measure,
    rehearse_setting,
    train_setting,
    usable_device,
)
from tinygraph.recipes.plain_run import require_compile
from tinygraph.recipes.recipe import Recipe
from tinygraph.training import Progress, RunFolder, first_batch_step

CLASSES = 10
USUAL = {"digits": (16, 30), "mnist": (100, 3)}  # batch size and epochs where none are given
Padding = Literal["valid", "same"]


@dataclass
class Config:
    """Settings.  Without a batch size or epochs: 16 and 30 for digits, 100 and 3 for mnist."""

    data: str = "digits"
    filters: int = 32
    padding: Padding = "valid"  # or "same": convolution and pooling pad, and leave no pixel out
    strict: bool = False  # refuse images of which the pooling leaves pixels out
    batch_size: int | None = None
    epochs: int | None = None
    lr: float = 0.1
    seed: int = 0
    duration: float | None = None  # seconds, in the place of epochs
    backup_every: float | None = None  # seconds
    device: str = "cpu"  # or "emulator": the .cu kernels on the CPU; or "cuda"
    compile: bool = False  # forward and backward through a plan
    tune: bool = False  # with compile: measure tiles and threads, and keep the fastest

    def __post_init__(self) -> None:
        batch_size, epochs = USUAL.get(self.data, USUAL["digits"])
        self.batch_size = batch_size if self.batch_size is None else self.batch_size
        if self.epochs is None and self.duration is None:
            self.epochs = epochs
        require_compile("numba_cnn", self)


def model(
    filters: int,
    image_shape: tuple[int, int, int],
    classes: int = CLASSES,
    padding: Padding = "valid",
    strict: bool = False,
) -> nn.Sequential:
    """The network for images of one shape (C, H, W).

    Parameters
    ----------
    filters : int
        D.
    image_shape : (int, int, int)
        C, H, W.
    classes : int
        K.
    padding : {"valid", "same"}
        "same": zeros around the image, so that the convolution keeps its size, and a row or column
        more where the pooling needs one.
    strict : bool
        Refuse an odd height or width, of which the pooling would leave out the last row or column.

    Raises
    ------
    ShapeError
        Fewer than 4 by 4 pixels; with `strict`, pixels that are left out.

    Examples
    --------
    >>> import tinygraph as tg
    >>> model(32, (1, 28, 28))(tg.zeros((5, 1, 28, 28))).shape
    (5, 10)
    """
    channels, height, width = image_shape
    if min(height, width) < 4:
        raise ShapeError(
            "numba_cnn", "image_shape", "at least 4 by 4 pixels", f"{height} by {width}"
        )
    border: int | str
    if padding == "same":
        border, rows, columns = "same", (height + 1) // 2, (width + 1) // 2
    else:
        border, rows, columns = 0, (height - 2) // 2, (width - 2) // 2
        if strict:
            _require_even(height, width)
    return nn.Sequential(
        nn.Conv2d(channels, filters, 3, padding=border, strict=strict),
        nn.ReLU(),
        nn.MaxPool2d(2, padding=border, strict=strict),
        nn.Flatten(),
        nn.Linear(filters * rows * columns, classes),
    )


def _require_even(height: int, width: int) -> None:
    """ShapeError where the pooling would leave pixels out, with the sizes that fit."""
    odd = [
        f"{name} {size - 1} or {size + 1}"
        for name, size in (("height", height), ("width", width))
        if size % 2
    ]
    if odd:
        raise ShapeError(
            "numba_cnn",
            "image_shape",
            "a size of which max-pool 2x2 leaves no pixel out "
            f"after the convolution ({', '.join(odd)})",
            f"{height} by {width}",
            "pad or crop the images, --set padding=same, or leave strict out",
        )


def _model_of(config: Config, shape: tuple[int, int, int]) -> nn.Sequential:
    return model(config.filters, shape, CLASSES, config.padding, config.strict)


def set_up(config: Config, data_dir: str | Path | None = None, download: bool = False) -> Setting:
    """Load, split and standardise the data, and make the network."""
    device = _usable_device(config.device)  # an absent one shows before anything is loaded
    images = load_images("numba_cnn", config.data, config.seed, data_dir, download)
    tg.manual_seed(config.seed)
    network = _model_of(config, images.shape).to(device)
    return Setting(network, *images, lambda net: SGD(net.named_parameters(), lr=config.lr))


def train(
    config: Config,
    run: RunFolder,
    data_dir: str | Path | None = None,
    download: bool = False,
    progress: Progress | None = None,
) -> dict[str, float]:
    """Train, look at the test data once, and leave everything in the run folder.

    A run that was opened goes on where it stopped.

    Returns
    -------
    dict
        `loss` and `accuracy` on the test data.
    """
    setting = set_up(config, data_dir, download)
    return train_setting("numba_cnn", config, setting, run, data_dir, progress)


def rehearse(
    config: Config, data_dir: str | Path | None = None, download: bool = False
) -> dict[str, Any]:
    """One batch forward and backward, timed; nothing is learnt and nothing written."""
    return rehearse_setting(config, set_up(config, data_dir, download))


def training_step(
    config: Config, data_dir: str | Path | None = None, download: bool = False
) -> Callable[[], Any]:
    """Learn from one batch, again and again; nothing is written."""
    setting = set_up(config, data_dir, download)
    trainer = setting.trainer(config, progress=False)
    return first_batch_step(trainer, setting.loader(config))


def evaluate_run(
    run: RunFolder, data_dir: str | Path | None = None, best: bool = False, device: str = "cpu"
) -> dict[str, float]:
    """`loss` and `accuracy` of a run's last or best parameters on the test data.

    The device may be another one than that of the training.
    """
    target = _usable_device(device)
    test = load_test(run, recipe.settings_of(run).data, data_dir)
    return measure(_load(run, best).to(target), test)


def draw(run: RunFolder) -> Iterator[Path]:
    """The graph of a step and the report, then curves and filters, which need matplotlib."""
    network, data = _load(run), recipe.settings_of(run).data
    weight = dict(network.named_parameters())["0.weight"]
    return draw_run(run, f"numba_cnn on {data}", data, network, weight)


def _load(run: RunFolder, best: bool = False) -> nn.Sequential:
    """The network of a run with its last or its best parameters."""
    network = _model_of(recipe.settings_of(run), image_shape(run))
    network.load_state_dict(run.load_parameters(best))
    return network


def _usable_device(name: str) -> Device:
    return usable_device(name, find_compiler)


recipe = Recipe(
    name="numba_cnn",
    summary="conv 3x3, ReLU, max-pool 2x2, linear: handwritten digits (digits, mnist)",
    config=Config,
    train=train,
    rehearse=rehearse,
    training_step=training_step,
    evaluate=evaluate_run,
    metric="accuracy",
    draw=draw,
)
