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

from dataclasses import dataclass
from typing import Any, Literal

import tinygraph as tg
from tinygraph import nn
from tinygraph.optim import SGD
from tinygraph.recipes.images import ImageRecipe, Shape3, image_shape
from tinygraph.recipes.settings import TrainingSettings

CLASSES = 10
USUAL = {"digits": (16, 30), "mnist": (100, 3)}  # batch size and epochs where none are given
Padding = Literal["valid", "same"]


@dataclass
class Config(TrainingSettings):
    """Settings.  Without a batch size or epochs: 16 and 30 for digits, 100 and 3 for mnist."""

    data: str = "digits"  # set of images
    filters: int = 32  # of the convolution
    padding: Padding = "valid"  # same: convolution and pooling pad, and leave no pixel out
    strict: bool = False  # refuse images of which the pooling leaves pixels out
    batch_size: int | None = None  # images of a step; 16 for digits, 100 for mnist
    lr: float = 0.1  # learning rate

    def __post_init__(self) -> None:
        batch_size, epochs = USUAL.get(self.data, USUAL["digits"])
        self.batch_size = batch_size if self.batch_size is None else self.batch_size
        if self.epochs is None and self.duration is None:
            self.epochs = epochs


def model(
    filters: int,
    image_shape: Shape3,
    classes: int = CLASSES,
    padding: Padding = "valid",
    strict: bool = False,
) -> nn.Sequential:
    """The network for images of one shape (C, H, W).

    With padding "same" there are zeros around the image, so that the convolution keeps its size,
    and a row or column more where the pooling needs one.

    Raises
    ------
    ShapeError
        Images that are too small; with `strict`, of which the pooling would leave pixels out.

    Examples
    --------
    >>> model(32, (1, 28, 28))(tg.zeros((5, 1, 28, 28))).shape
    (5, 10)
    """
    border: int | str = 0 if padding == "valid" else "same"
    features = nn.Sequential(
        nn.Conv2d(image_shape[0], filters, 3, padding=border, strict=strict),
        nn.ReLU(),
        nn.MaxPool2d(2, padding=border, strict=strict),
        nn.Flatten(),
    )
    with tg.no_grad():
        count = features(tg.zeros((1, *image_shape))).shape[1]  # the shapes are the layers' to say
    return nn.Sequential(*features, nn.Linear(count, classes))


class NumbaCnn(ImageRecipe):
    """The network, softmax cross-entropy and gradient descent, on images with labels."""

    name = "numba_cnn"
    summary = "conv 3x3, ReLU, max-pool 2x2, linear: handwritten digits (digits, mnist)"
    config = Config

    def model(self, config: Config, facts: dict[str, Any]) -> nn.Sequential:
        shape = image_shape(facts)
        return model(config.filters, shape, CLASSES, config.padding, config.strict)

    def optimizer(self, config: Config, network: Any) -> SGD:
        return SGD(network.named_parameters(), lr=config.lr)


recipe = NumbaCnn()
