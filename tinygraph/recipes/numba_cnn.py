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

from tinygraph import nn
from tinygraph.errors import ShapeError
from tinygraph.optim import SGD
from tinygraph.recipes.images import ImageRecipe, Shape3, image_shape

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


def model(
    filters: int,
    image_shape: Shape3,
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
