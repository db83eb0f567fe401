"""vgg_cifar: a small VGG names what stands on a picture of 32 x 32 pixels, by ADADELTA.

    3x32x32                          a picture, (value - mean) / standard deviation
      conv 3x3 - norm - ReLU - pool  -> 32x16x16
      conv 3x3 - norm - ReLU - pool  -> 64x8x8
      conv 3x3 - norm - ReLU - pool  -> 128x4x4
      dropout - conv 1x1 - mean      -> 10
    loss = softmax cross-entropy, by ADADELTA; pictures are shifted and mirrored at random

`network="residual"` takes pre-activation residual blocks for the convolutions; `network="linear"`
is softmax regression, logits = W x + b on the same pixels: what the convolutions are compared with.

`hidden=1024,1024` takes fully connected layers for the 1x1 convolution.  `parallel="switch"`, for
several ranks: convolutions are data parallel, hidden layers model parallel, each rank with some of
their features; see distributed/linear.py for the `scheme`.

Sources: "Neural network implementation tips and tricks", 2016; the papers are named in vgg.py;
Krizhevsky, "One weird trick for parallelizing convolutional neural networks", arXiv:1404.5997.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

from tinygraph import nn
from tinygraph.base import ArgumentError
from tinygraph.distributed import Linear
from tinygraph.optim import Adadelta
from tinygraph.recipes.images import PictureRecipe, image_shape
from tinygraph.recipes.settings import Count, Layers, TrainingSettings
from tinygraph.recipes.vgg import vgg

CLASSES = 10
HIDDEN = (1024, 1024)  # where ranks are to share them, and none are named


@dataclass
class Config(TrainingSettings):
    """Settings.  Without `data`: cifar10 where its files are found, otherwise digits."""

    data: str | None = None  # set of images; by default the one at hand
    network: Literal["vgg", "residual", "linear"] = "vgg"  # residual: with skips
    widths: tuple[Count, ...] = (32, 64, 128)  # channels of each stage
    convolutions: Layers = 1  # of each stage
    hidden: tuple[Count, ...] | None = None  # widths of fully connected layers
    dropout: float = 0.2  # share of activations that is dropped
    augment: bool = True  # shift and mirror images
    batch_size: int = 100  # images of a step
    lr: float = 1.0  # learning rate; 1 is the published ADADELTA
    rho: float = 0.95  # how much ADADELTA keeps of its means
    weight_decay: float = 0.0  # pull of weights to 0
    parallel: Literal["data", "switch"] = "data"  # switch: ranks share the hidden layers
    scheme: Literal["a", "b", "c"] = "a"  # of the switch: which samples travel at a time

    usual_epochs: ClassVar[int] = 12

    def __post_init__(self) -> None:
        if self.hidden is None:
            self.hidden = HIDDEN if self.parallel == "switch" else ()
        super().__post_init__()


class VggCifar(PictureRecipe):
    """A VGG by ADADELTA, on CIFAR-10 where its files are found."""

    name = "vgg_cifar"
    summary = "a small VGG with batch norm, by ADADELTA: pictures of ten classes (cifar10)"
    config = Config
    shift = 1 / 16  # two pixels of 32

    def model(self, config: Config, facts: dict[str, Any]) -> nn.Sequential:
        """For images of facts["image_shape"], (C, H, W)."""
        shape, hidden = image_shape(facts), config.hidden or ()
        if config.network == "linear":
            if hidden:
                expected, way_out = "none for softmax regression", "network=vgg"
                raise ArgumentError(self.name, "hidden", expected, hidden, way_out)
            return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), CLASSES))
        residual = config.network == "residual"
        settings = config.convolutions, config.dropout, residual, hidden
        if config.parallel == "data":
            return vgg(shape, config.widths, CLASSES, *settings)
        split = partial(Linear, scheme=config.scheme)
        network = vgg(shape, config.widths, CLASSES, *settings, split)
        nn.SyncBatchNorm.convert_sync_batchnorm(network)  # the statistics of one process
        return network

    def optimizer(self, config: Config, network: Any) -> Adadelta:
        rule = config.lr, config.rho
        return Adadelta(network.named_parameters(), *rule, weight_decay=config.weight_decay)

    def title(self, config: Config) -> str:
        return f"vgg_cifar ({config.network}) on {config.data}"


recipe = VggCifar()
