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

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal

from tinygraph import nn
from tinygraph.data import TransformedDataset, compose, horizontal_flip, random_crop
from tinygraph.data.transforms import Transform
from tinygraph.errors import DatasetError
from tinygraph.optim import Adadelta
from tinygraph.recipes.images import ImageRecipe, Shape3, image_shape
from tinygraph.recipes.settings import Count, TrainingSettings
from tinygraph.recipes.task import Data, Folder
from tinygraph.recipes.vgg import shape_chain, vgg

CLASSES = 10
SHIFT = 1 / 16  # of its size: how far a picture is moved at most, each way


@dataclass
class Config(TrainingSettings):
    """Settings.  Without `data`: cifar10 where its files are found, otherwise digits."""

    data: str | None = None  # set of images; by default the one at hand
    network: Literal["vgg", "residual", "linear"] = "vgg"  # residual: with skips
    widths: tuple[Count, ...] = (32, 64, 128)  # channels of each stage
    convolutions: Count = 1  # of each stage
    dropout: float = 0.2  # share of activations that is dropped
    augment: bool = True  # shift and mirror images
    batch_size: int = 100  # images of a step
    lr: float = 1.0  # learning rate; 1 is the published ADADELTA
    rho: float = 0.95  # how much ADADELTA keeps of its means
    weight_decay: float = 0.0  # pull of weights to 0

    def __post_init__(self) -> None:
        if self.epochs is None and self.duration is None:
            self.epochs = 12


def augmentation(config: Config, shape: Shape3) -> Transform | None:
    """Shift by up to a sixteenth, two pixels of 32, and mirror.

    Only pictures of CIFAR-10 are mirrored: a mirrored horse is a horse, a mirrored 2 is no 2.
    """
    shift = int(min(shape[1:]) * SHIFT)
    transforms = [random_crop(shape[1:], padding=shift)] if shift else []
    transforms += [horizontal_flip()] if config.data == "cifar10" else []
    return compose(*transforms) if config.augment and transforms else None


class VggCifar(ImageRecipe):
    """A VGG by ADADELTA, on CIFAR-10 where its files are found."""

    name = "vgg_cifar"
    summary = "a small VGG with batch norm, by ADADELTA: pictures of ten classes (cifar10)"
    config = Config

    def data(self, config: Config, data_dir: Folder = None, download: bool = False) -> Data:
        """As every ImageRecipe, augmented; the settings name the data where none were asked for."""
        found = self._found(config, data_dir, download)
        augment = augmentation(config, image_shape(found.facts))
        if augment is None:
            return found
        return replace(found, training=TransformedDataset(found.training, augment, config.seed))

    def _found(self, config: Config, data_dir: Folder, download: bool) -> Data:
        if config.data is None:
            config.data = "cifar10"
            try:
                return super().data(config, data_dir, download)
            except DatasetError as error:
                if data_dir is not None:  # a folder was named: what is wrong with it is the answer
                    raise
                text = f"{error}. Until then this trains on scikit-learn's digits"
                warnings.warn(text, stacklevel=3)
            config.data = "digits"
        return super().data(config, data_dir, download)

    def model(self, config: Config, facts: dict[str, Any]) -> nn.Sequential:
        """For images of facts["image_shape"], (C, H, W)."""
        shape = image_shape(facts)
        if config.network == "linear":
            return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), CLASSES))
        residual = config.network == "residual"
        settings = config.convolutions, config.dropout, residual
        return vgg(shape, config.widths, CLASSES, *settings)

    def optimizer(self, config: Config, network: Any) -> Adadelta:
        rule = config.lr, config.rho
        return Adadelta(network.named_parameters(), *rule, weight_decay=config.weight_decay)

    def summary_of(self, network: Any, batch: Any) -> str:
        return f"{super().summary_of(network, batch)}\n{shape_chain(network, batch.shape[1:])}"

    def title(self, config: Config) -> str:
        return f"vgg_cifar ({config.network}) on {config.data}"


recipe = VggCifar()
