"""vgg_cifar: a small VGG names what stands on a picture of 32 x 32 pixels, by ADADELTA.

    3x32x32                          a picture, (value - mean) / standard deviation
      conv 3x3 - norm - ReLU - pool  -> 32x16x16
      conv 3x3 - norm - ReLU - pool  -> 64x8x8
      conv 3x3 - norm - ReLU - pool  -> 128x4x4
      dropout - conv 1x1 - mean      -> 10
    loss = softmax cross-entropy, by ADADELTA; pictures are shifted and mirrored at random

`network="residual"` takes pre-activation residual blocks for the convolutions; `network="linear"`
is softmax regression, logits = W x + b on the same pixels: what the convolutions are compared with.

Source: "Neural network implementation tips and tricks", 2016; the papers are named in vgg.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tinygraph as tg
from tinygraph import nn
from tinygraph.data import compose, horizontal_flip, random_crop
from tinygraph.data.transforms import Transform
from tinygraph.errors import DatasetError
from tinygraph.optim import Adadelta, Optimizer
from tinygraph.recipes.image_run import (
    Images,
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
from tinygraph.recipes.vgg import Shape3, shape_chain, vgg
from tinygraph.training import Progress, RunFolder, first_batch_step

CLASSES = 10
SHIFT = 1 / 16  # of its size: how far a picture is moved at most, each way


@dataclass
class Config:
    """Settings.  Without `data`: cifar10 where its files are found, otherwise digits."""

    data: str | None = None
    network: Literal["vgg", "residual", "linear"] = "vgg"
    widths: tuple[int, ...] = (32, 64, 128)
    convolutions: int = 1  # of each stage
    dropout: float = 0.2
    augment: bool = True
    batch_size: int = 100
    epochs: int | None = None
    lr: float = 1.0  # the published ADADELTA
    rho: float = 0.95
    weight_decay: float = 0.0
    seed: int = 0
    duration: float | None = None  # seconds, in the place of epochs
    backup_every: float | None = None  # seconds
    device: str = "cpu"  # or "emulator": the .cu kernels on the CPU; or "cuda"
    compile: bool = False  # forward and backward through a plan
    tune: bool = False  # with compile: measure tiles and threads, and keep the fastest

    def __post_init__(self) -> None:
        self.widths = tuple(self.widths)  # JSON has lists
        if self.epochs is None and self.duration is None:
            self.epochs = 12
        require_compile("vgg_cifar", self)


def model(config: Config, shape: Shape3) -> nn.Sequential:
    """The network that the settings ask for, for images of one shape (C, H, W).

    >>> import tinygraph as tg
    >>> network = model(Config(network="residual"), (3, 32, 32)).eval()
    >>> network(tg.zeros((5, 3, 32, 32))).shape
    (5, 10)
    """
    if config.network == "linear":
        channels, height, width = shape
        return nn.Sequential(nn.Flatten(), nn.Linear(channels * height * width, CLASSES))
    return vgg(
        shape,
        config.widths,
        CLASSES,
        config.convolutions,
        config.dropout,
        residual=config.network == "residual",
    )


def optimizer(config: Config, network: nn.Module) -> Optimizer:
    """ADADELTA with the settings' rate, decay of the means and weight decay."""
    return Adadelta(
        network.named_parameters(), config.lr, config.rho, weight_decay=config.weight_decay
    )


def augmentation(config: Config, shape: Shape3) -> Transform | None:
    """Shift by up to a sixteenth, two pixels of 32, and mirror.

    Only pictures of CIFAR-10 are mirrored: a mirrored horse is a horse, a mirrored 2 is no 2.
    """
    shift = int(min(shape[1:]) * SHIFT)
    transforms = [random_crop(shape[1:], padding=shift)] if shift else []
    transforms += [horizontal_flip()] if config.data == "cifar10" else []
    return compose(*transforms) if config.augment and transforms else None


def set_up(config: Config, data_dir: str | Path | None = None, download: bool = False) -> Setting:
    """Load, split and standardise the data, and make the network."""
    device = usable_device(config.device)  # an absent one shows before anything is loaded
    images = _images(config, data_dir, download)
    tg.manual_seed(config.seed)
    network = model(config, images.shape).to(device)
    return Setting(
        network,
        *images,
        lambda network: optimizer(config, network),
        augmentation(config, images.shape),
    )


def _images(config: Config, data_dir: str | Path | None, download: bool) -> Images:
    """The data, and its name in the settings where none was asked for."""
    if config.data is not None:
        return load_images("vgg_cifar", config.data, config.seed, data_dir, download)
    config.data = "cifar10"
    try:
        return load_images("vgg_cifar", "cifar10", config.seed, data_dir, download)
    except DatasetError as error:
        if data_dir is not None:  # a folder was named: what is wrong with it is the answer
            raise
        warnings.warn(f"{error}. Until then this trains on scikit-learn's digits", stacklevel=3)
    config.data = "digits"
    return load_images("vgg_cifar", "digits", config.seed)


def train(
    config: Config,
    run: RunFolder,
    data_dir: str | Path | None = None,
    download: bool = False,
    progress: Progress | None = None,
) -> dict[str, float]:
    """Train, look at the test data once, and leave everything in the run folder.

    Returns
    -------
    dict
        `loss` and `accuracy` on the test data.
    """
    setting = set_up(config, data_dir, download)
    return train_setting("vgg_cifar", config, setting, run, data_dir, progress)


def rehearse(
    config: Config, data_dir: str | Path | None = None, download: bool = False
) -> dict[str, Any]:
    """One batch forward and backward, timed; nothing is learnt and nothing written."""
    setting = set_up(config, data_dir, download)
    found = rehearse_setting(config, setting)
    shape = setting.training.inputs.shape[1:]
    return found | {"summary": f"{found['summary']}\n{shape_chain(setting.network, shape)}"}


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
    """`loss` and `accuracy` of a run's last or best parameters on the test data."""
    target = usable_device(device)
    test = load_test(run, _data_of(run), data_dir)
    return measure(_load(run, best).to(target), test)


def draw(run: RunFolder) -> Iterator[Path]:
    """The graph of a step, the report, curves, and the first convolution's filters.

    Of the linear network the rows of W are drawn: what each class looks for, pixel by pixel.
    """
    config, network = recipe.settings_of(run), _load(run)
    weights = first_weights(network, image_shape(run))
    title = f"vgg_cifar ({config.network}) on {config.data}"
    return draw_run(run, title, _data_of(run), network, weights)


def first_weights(network: nn.Sequential, shape: Shape3) -> Any:
    """The weights that look at the pixels, as images (O, C, KH, KW)."""
    first = next(p for name, p in network.named_parameters() if p.ndim in (2, 4))
    return first.value if first.ndim == 4 else first.value.reshape(-1, *shape)


def _load(run: RunFolder, best: bool = False) -> nn.Sequential:
    """The network of a run with its last or its best parameters."""
    network = model(recipe.settings_of(run), image_shape(run))
    network.load_state_dict(run.load_parameters(best))
    return network


def _data_of(run: RunFolder) -> str:
    return recipe.settings_of(run).data or "cifar10"


recipe = Recipe(
    name="vgg_cifar",
    summary="a small VGG with batch norm, by ADADELTA: pictures of ten classes (cifar10)",
    config=Config,
    train=train,
    rehearse=rehearse,
    training_step=training_step,
    evaluate=evaluate_run,
    metric="accuracy",
    draw=draw,
)
