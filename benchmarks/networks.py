"""The networks that people know, each written once, for a library with PyTorch's names.

    lenet5      LeNet-5 on 28 x 28 with ReLU and max-pooling; batch 64, SGD with momentum
    resnet18    ResNet-18 for 32 x 32: a first convolution of 3 x 3, no pooling; 16, 32, 64 and 128
                channels; batch 32, SGD with momentum
    srcnn       SRCNN 9-1-5 with 64 and 32 filters on crops of 33; batch 16, mean squared error,
                Adam
    gpt         a GPT of 2 blocks, 64 features, 4 heads, exact GELU; 16 windows of 32 characters out
                of 65, AdamW

`T` is torch or tinygraph: the text is the same.  All sides start from the same weights and see the
same batch.  Only numpy is needed, so that this file can be imported where nothing else is
installed.

Sources: LeCun et al., "Gradient-based learning applied to document recognition", 1998; He et al.,
"Deep residual learning for image recognition", arXiv:1512.03385; Dong et al., "Image
super-resolution using deep convolutional networks", arXiv:1501.00092; Radford et al., "Language
models are unsupervised multitask learners", 2019.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

F32 = np.float32
CHARACTERS, CONTEXT, WIDTH, HEADS, BLOCKS = 65, 32, 64, 4, 2  # of the GPT
CHANNELS = 16  # of the first stage of the ResNet


@dataclass(frozen=True)
class Network:
    """A module, its batch and its optimiser.

    Attributes
    ----------
    name : str
    build : function of a library
        Gives the module; its parameters have PyTorch's names.
    inputs, labels : array
    loss : str
        A function of `nn.functional`: "cross_entropy" or "mse_loss".
    optimizer : (str, mapping)
        A class of `optim`, and its settings.
    """

    name: str
    build: Callable[[Any], Any]
    inputs: np.ndarray
    labels: np.ndarray
    loss: str
    optimizer: tuple[str, Mapping[str, float]]


def weights(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """What training starts from, by the names of parameters: each is drawn by its own name.

    Normal with deviation sqrt(2 / inputs); vectors are those of norms and biases, ones and zeros.

    >>> {name: a.tolist() for name, a in weights({"norm.weight": (2,), "norm.bias": (2,)}).items()}
    {'norm.weight': [1.0, 1.0], 'norm.bias': [0.0, 0.0]}
    """
    found = {}
    for name, shape in shapes.items():
        if len(shape) < 2:
            found[name] = np.full(shape, name.endswith("weight"), F32)
            continue
        inputs = shape[1] if "table" in name else math.prod(shape[1:])
        drawn = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(shape)
        found[name] = (drawn * math.sqrt(2 / inputs)).astype(F32)
    return found


# ---- LeNet-5 ------------------------------------------------------------------------------------


def lenet5(T: Any) -> Any:
    nn = T.nn
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),  # (N, 6, 14, 14)
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),  # (N, 16, 5, 5)
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )


# ---- ResNet-18 ----------------------------------------------------------------------------------


def resnet18(T: Any) -> Any:
    nn = T.nn

    class Block(nn.Module):
        def __init__(self, before: int, channels: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(before, channels, 3, stride, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(channels)
            self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(channels)
            self.relu = nn.ReLU()
            self.shortcut = nn.Identity()
            if stride != 1 or before != channels:
                down = nn.Conv2d(before, channels, 1, stride, bias=False)
                self.shortcut = nn.Sequential(down, nn.BatchNorm2d(channels))

        def forward(self, x: Any) -> Any:
            y = self.relu(self.bn1(self.conv1(x)))
            return self.relu(self.bn2(self.conv2(y)) + self.shortcut(x))

    first = nn.Conv2d(3, CHANNELS, 3, padding=1, bias=False)
    layers: list[Any] = [first, nn.BatchNorm2d(CHANNELS), nn.ReLU()]
    before = CHANNELS
    for stage in range(4):
        channels = CHANNELS << stage
        layers += [Block(before, channels, 2 if stage else 1), Block(channels, channels, 1)]
        before = channels
    ends = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 10)]
    return nn.Sequential(*layers, *ends)


# ---- SRCNN --------------------------------------------------------------------------------------


def srcnn(T: Any) -> Any:
    nn = T.nn
    return nn.Sequential(
        nn.Conv2d(1, 64, 9), nn.ReLU(), nn.Conv2d(64, 32, 1), nn.ReLU(), nn.Conv2d(32, 1, 5)
    )


# ---- GPT ----------------------------------------------------------------------------------------


def gpt(T: Any) -> Any:
    nn, functional = T.nn, T.nn.functional

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
            self.out = nn.Linear(WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            n, t, e = x.shape
            q, k, v = (
                part.view(n, t, HEADS, e // HEADS).transpose(1, 2)
                for part in self.qkv(x).split(e, dim=2)
            )
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).reshape(n, t, e))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.attention = nn.LayerNorm(WIDTH), Attention()
            self.norm2 = nn.LayerNorm(WIDTH)
            self.mlp = nn.Sequential(
                nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
            )

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    class Gpt(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.character_table = nn.Embedding(CHARACTERS, WIDTH)
            self.place_table = nn.Embedding(CONTEXT, WIDTH)
            self.blocks = nn.Sequential(*[Block() for _ in range(BLOCKS)])
            self.norm = nn.LayerNorm(WIDTH)
            self.head = nn.Linear(WIDTH, CHARACTERS, bias=False)

        def forward(self, codes: Any) -> Any:
            n, t = codes.shape
            x = self.character_table(codes) + self.place_table(T.arange(t, device=codes.device))
            x = self.norm(self.blocks(x))
            return self.head(x).reshape(n * t, CHARACTERS)

    return Gpt()


# ---- by name ------------------------------------------------------------------------------------


def _normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(F32)


def _labels(count: int, classes: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, classes, count)


def _lenet5() -> Network:
    momentum = "SGD", {"lr": 0.01, "momentum": 0.9}
    images, labels = _normal(64, 1, 28, 28), _labels(64, 10)
    return Network("LeNet-5, batch 64", lenet5, images, labels, "cross_entropy", momentum)


def _resnet18() -> Network:
    momentum = "SGD", {"lr": 0.01, "momentum": 0.9}
    images, labels = _normal(32, 3, 32, 32), _labels(32, 10)
    name = f"ResNet-18 for 32x32, width {CHANNELS}, batch 32"
    return Network(name, resnet18, images, labels, "cross_entropy", momentum)


def _srcnn() -> Network:
    crops = _normal(16, 1, 33, 33)
    adam = "Adam", {"lr": 1e-4}
    name = "SRCNN 9-1-5, crops of 33, batch 16"
    return Network(name, srcnn, crops, crops[:, :, 6:-6, 6:-6].copy(), "mse_loss", adam)


def _gpt() -> Network:
    codes = _labels(16 * CONTEXT, CHARACTERS)
    labels = np.random.default_rng(2).integers(0, CHARACTERS, codes.size)
    adam = "AdamW", {"lr": 1e-3, "weight_decay": 0.1}
    name = f"GPT, {BLOCKS} blocks of {WIDTH}, context {CONTEXT}, batch 16"
    return Network(name, gpt, codes.reshape(16, CONTEXT), labels, "cross_entropy", adam)


NETWORKS: dict[str, Callable[[], Network]] = {
    "lenet5": _lenet5,
    "resnet18": _resnet18,
    "srcnn": _srcnn,
    "gpt": _gpt,
}
