"""vgg: the network of vgg_cifar and vgg224, stages of small convolutions that halve the image.

    N images of C channels, H x W pixels; W_1, W_2, ... channels after each stage; K classes

    stage s    conv 3x3, padding 1  ->  batch norm  ->  ReLU      (N, W_s, H, W), several times
               max-pool 2x2                                       (N, W_s, H/2, W/2)
    head       dropout  ->  conv 1x1 (N, K, h, w)  ->  global average pooling (N, K, 1, 1)
               ->  flatten (N, K)

Padding 1 keeps the size of the image, so that only pooling changes it.  Batch norm stands before
the ReLU, and takes the convolution's bias over.  Dropout comes after all batch norms: before one,
it would change the variance that the norm sees in training, but not in evaluation.  The 1x1
convolution scores the classes at each place and the mean over all places is the logit; no linear
layer ties the network to one size of images.

With `hidden` widths the head is that of the first VGGs, flatten - (linear - ReLU - dropout) for
each width - linear (N, K): most of the parameters are there then, which is what model parallel
layers are for.  With `residual=True` the convolutions of a stage go into pre-activation blocks

    y = shortcut(x) + f(x),   f = norm - ReLU - conv 3x3 - norm - ReLU - conv 3x3

whose shortcut is a 1x1 convolution where the number of channels changes, and otherwise nothing.

Sources: "Neural network implementation tips and tricks", 2016 (the listing);
Simonyan, Zisserman, "Very deep convolutional networks for large-scale image recognition", 2015;
Lin, Chen, Yan, "Network in network", 2014 (1x1 convolutions, global average pooling);
He, Zhang, Ren, Sun, "Identity mappings in deep residual networks", 2016 (pre-activation);
Li, Chen, Hu, Yang, "Understanding the disharmony between dropout and batch normalization", 2019.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tinygraph import nn
from tinygraph.base import ArgumentError, ShapeError
from tinygraph.recipes.images import Shape3


def vgg(
    image_shape: Shape3,
    widths: Sequence[int],
    classes: int = 10,
    convolutions: int = 1,
    dropout: float = 0.0,
    residual: bool = False,
    hidden: Sequence[int] = (),
    linear: Callable[[int, int], nn.Module] = nn.Linear,
) -> nn.Sequential:
    """The network for images (C, H, W), with one stage for each width, the channels after it.

    A stage has so many `convolutions`, or residual blocks of two each; `dropout` comes before the
    1x1 convolution, or after each `hidden` layer, which `linear` makes of its input and output
    features.  From (N, C, H, W) to logits (N, K); its parts are stage1, stage2, ..., head.

    Raises
    ------
    ArgumentError
        No width, or fewer than one convolution.
    ShapeError
        Images that are too small to be halved so often.

    Examples
    --------
    >>> import tinygraph as tg
    >>> network = vgg((3, 32, 32), [8, 16]).eval()
    >>> network(tg.zeros((5, 3, 32, 32))).shape
    (5, 10)
    """
    if not widths or convolutions < 1:
        expected = "at least one width, and 1 convolution"
        got = f"{tuple(widths)} and {convolutions}"
        raise ArgumentError("vgg", "widths and convolutions", expected, got)
    channels, height, width = image_shape
    if min(height, width) < 2 ** len(widths):
        expected = (
            f"at least {2 ** len(widths)} by {2 ** len(widths)} "
            f"pixels, which are halved {len(widths)} times"
        )
        raise ShapeError(
            "vgg", "image_shape", expected, f"{height} by {width}", "give fewer widths"
        )
    stages: dict[str, nn.Module] = {}
    for number, wide in enumerate(widths, start=1):
        layers: list[nn.Module] = []
        for _ in range(convolutions):
            layers += [residual_block(channels, wide)] if residual else plain(channels, wide)
            channels = wide
        stages[f"stage{number}"] = nn.Sequential(*layers, nn.MaxPool2d(2))
    last = [nn.BatchNorm2d(channels), nn.ReLU()] if residual else []  # blocks end in a convolution
    if hidden:
        height, width = (size // 2 ** len(widths) for size in (height, width))
        head = fully_connected(channels * height * width, hidden, classes, dropout, linear)
    else:
        score = nn.Conv2d(channels, classes, 1)
        head = [nn.Dropout(dropout), score, nn.GlobalAvgPool2d(), nn.Flatten()]
    stages["head"] = nn.Sequential(*last, *head)
    return nn.Sequential(stages)


def fully_connected(
    features: int,
    hidden: Sequence[int],
    classes: int,
    dropout: float,
    linear: Callable[[int, int], nn.Module],
) -> list[nn.Module]:
    """Hidden layers, then the scores: (N, C, H, W) with so many features to (N, classes)."""
    layers: list[nn.Module] = [nn.Flatten()]
    for wide in hidden:
        layers += [linear(features, wide), nn.ReLU(), nn.Dropout(dropout)]
        features = wide
    return [*layers, nn.Linear(features, classes)]


def plain(channels: int, wide: int) -> list[nn.Module]:
    """Convolution, batch norm, ReLU: (N, channels, H, W) to (N, wide, H, W)."""
    return [nn.Conv2d(channels, wide, 3, padding=1, bias=False), nn.BatchNorm2d(wide), nn.ReLU()]


def residual_block(channels: int, wide: int) -> nn.Residual:
    """The pre-activation block, (N, channels, H, W) to (N, wide, H, W)."""
    return nn.Residual(
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        nn.Conv2d(channels, wide, 3, padding=1, bias=False),
        nn.BatchNorm2d(wide),
        nn.ReLU(),
        nn.Conv2d(wide, wide, 3, padding=1, bias=False),
        shortcut=None if channels == wide else nn.Conv2d(channels, wide, 1, bias=False),
    )
