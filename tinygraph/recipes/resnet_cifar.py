"""resnet_cifar: a ResNet names what stands on a picture of 32 x 32 pixels, by SGD with momentum.

    3x32x32                            a picture, (value - mean) / standard deviation
      conv 3x3 - norm - ReLU           -> 16x32x32
      3 blocks                         -> 16x32x32
      3 blocks, the first by steps of 2 -> 32x16x16
      3 blocks, the first by steps of 2 -> 64x8x8
      mean - linear                    -> 10
    loss = softmax cross-entropy, by SGD; pictures are shifted and mirrored at random

That is ResNet-20.  `widths=64,128,256,512` and `blocks=2` with `shortcut="project"` are the
ResNet-18 that is usual for pictures of this size.  The learning rate falls to a tenth after a half
and again after three quarters of the epochs, as in the paper (32,000 and 48,000 of 64,000 steps).

Source: He, Zhang, Ren, Sun, "Deep residual learning for image recognition", 2015, section 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tinygraph import nn
from tinygraph.optim import SGD, MultiStepLR, Optimizer
from tinygraph.recipes.images import PictureRecipe, image_shape
from tinygraph.recipes.resnet import Shortcut, resnet
from tinygraph.recipes.settings import Count, Layers, NotNegative, Share, TrainingSettings


@dataclass
class Config(TrainingSettings):
    """Settings.  Without `data`: cifar10 where its files are found, otherwise digits."""

    data: str | None = None  # set of images; by default the one at hand
    widths: tuple[Count, ...] = (16, 32, 64)  # channels of each stage
    blocks: Layers = 3  # of each stage
    shortcut: Shortcut = "pad"  # past a block that halves the image; project: a 1x1 convolution
    augment: bool = True  # shift and mirror images
    batch_size: int = 128  # images of a step
    lr: float = 0.1  # learning rate, a tenth after half the epochs and after three quarters
    momentum: Share = 0.9  # how much of the last direction is kept
    weight_decay: NotNegative = 1e-4  # pull of weights to 0

    usual_epochs: ClassVar[int] = 12


class ResnetCifar(PictureRecipe):
    """A ResNet by SGD with momentum, on CIFAR-10 where its files are found."""

    name = "resnet_cifar"
    summary = "ResNet-20 with batch norm, by SGD with momentum: pictures of ten classes (cifar10)"
    config = Config
    shift = 1 / 8  # four pixels of 32

    def model(self, config: Config, facts: dict[str, Any]) -> nn.Sequential:
        """For images of facts["image_shape"], (C, H, W)."""
        return resnet(image_shape(facts), config.widths, config.blocks, config.shortcut)

    def optimizer(self, config: Config, network: Any) -> SGD:
        rule = config.lr, config.momentum
        return SGD(network.named_parameters(), *rule, weight_decay=config.weight_decay)

    def schedule(self, config: Config, optimizer: Optimizer) -> MultiStepLR | None:
        """By epochs; a training that a duration ends keeps its rate."""
        if config.epochs is None:
            return None
        return MultiStepLR(optimizer, [config.epochs // 2, config.epochs * 3 // 4], gamma=0.1)


recipe = ResnetCifar()
