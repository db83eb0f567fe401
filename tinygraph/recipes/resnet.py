"""resnet: the network of resnet_cifar, blocks whose input is added to their output.

    N images of C channels, H x W pixels; W_1, W_2, ... channels of each stage; K classes

    stem       conv 3x3  ->  batch norm  ->  ReLU                   (N, W_1, H, W)
    stage s    blocks; the first of all stages but the first halves the image
                                                                    (N, W_s, H/2^(s-1), W/2^(s-1))
    head       global average pooling  ->  linear                   (N, K)

    block      y = relu(f(x) + shortcut(x)),   f = conv 3x3 - norm - ReLU - conv 3x3 - norm

f learns what is to be added to x, and adding nothing is easy to learn: so a network with more
blocks is no harder to train.  The shortcut is x itself; where f halves the image and has more
channels, it is one of

    pad        option A of the paper: every second pixel, and zeros in the new channels
    project    option B: a 1x1 convolution with stride 2, and batch norm

Two convolutions in each block, the stem and the linear layer: n blocks in each of three stages are
the 6n + 2 layers of the paper, 20 for n = 3; two blocks in each of four stages are 18.

Source: He, Zhang, Ren, Sun, "Deep residual learning for image recognition", 2015, section 4.2;
He, Zhang, Ren, Sun, "Delving deep into rectifiers", 2015 (the first numbers of the filters).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import tinygraph as tg
from tinygraph import nn
from tinygraph.base import ArgumentError, ShapeError
from tinygraph.engine import Tensor
from tinygraph.recipes.images import Shape3

Shortcut = Literal["pad", "project"]


class PadShortcut(nn.Module):
    """Every `stride`-th pixel, and zeros in the channels that x does not have."""

    def __init__(self, channels: int, wide: int, stride: int) -> None:
        self.more, self.stride = wide - channels, stride

    def forward(self, x: Tensor) -> Tensor:
        fewer = x[:, :, :: self.stride, :: self.stride]
        return tg.pad(fewer, ((0, 0), (0, self.more), (0, 0), (0, 0)))


class BasicBlock(nn.Module):
    """relu(f(x) + shortcut(x)), (N, channels, H, W) to (N, wide, H / stride, W / stride).

    Examples
    --------
    >>> import tinygraph as tg
    >>> BasicBlock(4, 8, stride=2)(tg.ones((16, 4, 6, 6))).shape
    (16, 8, 3, 3)
    """

    def __init__(
        self, channels: int, wide: int, stride: int = 1, shortcut: Shortcut = "pad"
    ) -> None:
        self.conv1 = nn.Conv2d(channels, wide, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(wide)
        self.conv2 = nn.Conv2d(wide, wide, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(wide)
        self.shortcut: nn.Module = nn.Identity()
        if (channels, stride) != (wide, 1) and shortcut == "pad":
            self.shortcut = PadShortcut(channels, wide, stride)
        elif (channels, stride) != (wide, 1):
            projection = nn.Conv2d(channels, wide, 1, stride, bias=False)
            self.shortcut = nn.Sequential(projection, nn.BatchNorm2d(wide))

    def forward(self, x: Tensor) -> Tensor:
        identity = self.shortcut(x)
        out = tg.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return tg.relu(out)


def resnet(
    image_shape: Shape3,
    widths: Sequence[int] = (16, 32, 64),
    blocks: int = 3,
    shortcut: Shortcut = "pad",
    classes: int = 10,
) -> nn.Sequential:
    """The network for images (C, H, W), with one stage of so many `blocks` for each width.

    From (N, C, H, W) to logits (N, K); its parts are stem, stage1, stage2, ..., head.

    Raises
    ------
    ArgumentError
        No width, no block, or a stage with fewer channels than the one before and padded shortcuts.
    ShapeError
        Images that are too small to be halved so often.

    Examples
    --------
    >>> import tinygraph as tg
    >>> network = resnet((3, 32, 32)).eval()
    >>> network(tg.zeros((5, 3, 32, 32))).shape
    (5, 10)
    >>> sum(p.size for p in network.parameters())
    269722
    """
    _check(image_shape, widths, blocks, shortcut)
    channels = widths[0]
    parts: dict[str, nn.Module] = {
        "stem": nn.Sequential(
            nn.Conv2d(image_shape[0], channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
        )
    }
    for stage, wide in enumerate(widths, start=1):
        first = BasicBlock(channels, wide, 1 if stage == 1 else 2, shortcut)
        rest = [BasicBlock(wide, wide) for _ in range(blocks - 1)]
        parts[f"stage{stage}"] = nn.Sequential(first, *rest)
        channels = wide
    parts["head"] = nn.Sequential(nn.GlobalAvgPool2d(), nn.Flatten(), nn.Linear(channels, classes))
    network = nn.Sequential(parts)
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return network


def _check(image_shape: Shape3, widths: Sequence[int], blocks: int, shortcut: Shortcut) -> None:
    if not widths or blocks < 1:
        expected = "at least one width, and 1 block"
        raise ArgumentError("resnet", "widths and blocks", expected, f"{(*widths,)} and {blocks}")
    if shortcut == "pad" and list(widths) != sorted(widths):
        expected = "widths that do not fall, where shortcuts are padded"
        raise ArgumentError("resnet", "widths", expected, (*widths,), "shortcut='project'")
    smallest = 2 ** (len(widths) - 1)
    if min(image_shape[1:]) < smallest:
        expected = f"at least {smallest} by {smallest} pixels, halved {len(widths) - 1} times"
        height, width = image_shape[1:]
        got = f"{height} by {width}"
        raise ShapeError("resnet", "image_shape", expected, got, "give fewer widths")
