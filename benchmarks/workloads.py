"""The networks whose training steps are timed: one description that every side builds from.

    seed        N x 1 x 28 x 28; conv 3x3 with D filters, ReLU, max-pool 2, linear to 10 classes
    mlp         784-512-512-10 with ReLU, batch 128
    vgg         N x 3 x 32 x 32; three times two conv 3x3 with padding, ReLU, then max-pool 2
    xor         2-8-1 with ReLU and mean squared error, batch 4: nothing but overhead per node

The first three end in softmax cross-entropy; the update is plain SGD.  All sides start from the
same weights and see the same batch.  Only numpy is needed, so that this file can be imported where
nothing else is installed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

F = np.float32
LEARNING_RATE = 0.01

# conv: padding; linear, relu, flatten: nothing; max_pool: size.  conv and linear have weights.
Layer = tuple[str, int]
WEIGHTED = ("conv", "linear")
Ops = Mapping[str, Callable[..., Any]]


@dataclass(frozen=True)
class Workload:
    """A network, its batch and its weights, in numpy.

    Attributes
    ----------
    layers : tuple of (kind, number)
    weights : tuple of array
        Weight and bias of each conv and linear, in order.
    images, labels : array (N, ...) float32, array (N,) int64
        For the mean squared error labels are the targets, float32.
    loss : "cross_entropy" or "mse"
    """

    name: str
    layers: tuple[Layer, ...]
    weights: tuple[np.ndarray, ...]
    images: np.ndarray
    labels: np.ndarray
    learning_rate: float = LEARNING_RATE
    loss: str = "cross_entropy"

    @property
    def is_seed_network(self) -> bool:
        """Whether the fused ops for conv, ReLU and max-pool can replace the first layers."""
        return self.layers[:3] == (("conv", 0), ("relu", 0), ("max_pool", 2))


def _weights(rng: np.random.Generator, shape: tuple[int, ...]) -> list[np.ndarray]:
    scale = math.sqrt(2 / math.prod(shape[1:]))
    return [(rng.standard_normal(shape) * scale).astype(F), np.zeros(shape[0], F)]


def _workload(
    name: str,
    layers: list[Layer],
    shapes: Sequence[tuple[int, ...]],
    image: tuple[int, ...],
    batch: int,
) -> Workload:
    rng = np.random.default_rng(0)
    weights = [array for shape in shapes for array in _weights(rng, shape)]
    images = rng.standard_normal((batch, *image)).astype(F)
    labels = rng.integers(0, 10, batch)
    return Workload(name, tuple(layers), tuple(weights), images, labels)


def seed_network(batch: int, filters: int, size: int = 28) -> Workload:
    layers = [("conv", 0), ("relu", 0), ("max_pool", 2), ("flatten", 0), ("linear", 0)]
    pooled = ((size - 2) // 2) ** 2
    shapes = [(filters, 1, 3, 3), (10, pooled * filters)]
    name = f"seed network, batch {batch}, {filters} filters"
    return _workload(name, layers, shapes, (1, size, size), batch)


def mlp(batch: int = 128, width: int = 512, features: int = 784) -> Workload:
    layers = [("linear", 0), ("relu", 0), ("linear", 0), ("relu", 0), ("linear", 0)]
    shapes = [(width, features), (width, width), (10, width)]
    name = f"MLP {features}-{width}-{width}-10, batch {batch}"
    return _workload(name, layers, shapes, (features,), batch)


def vgg(batch: int = 64, channels: tuple[int, ...] = (32, 64, 128), size: int = 32) -> Workload:
    layers: list[Layer] = []
    shapes: list[tuple[int, ...]] = []
    before = 3
    for count in channels:
        layers += [("conv", 1), ("relu", 0), ("conv", 1), ("relu", 0), ("max_pool", 2)]
        shapes += [(count, before, 3, 3), (count, count, 3, 3)]
        before = count
    layers += [("flatten", 0), ("linear", 0)]
    shapes.append((10, before * (size // 2 ** len(channels)) ** 2))
    name = f"VGG-like {'-'.join(map(str, channels))}, batch {batch}"
    return _workload(name, layers, shapes, (3, size, size), batch)


def xor(hidden: int = 8) -> Workload:
    layers: list[Layer] = [("linear", 0), ("relu", 0), ("linear", 0)]
    rng = np.random.default_rng(0)
    weights = [array for shape in ((hidden, 2), (1, hidden)) for array in _weights(rng, shape)]
    inputs = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], F)
    targets = np.array([[0], [1], [1], [0]], F)
    return Workload(
        f"MLP 2-{hidden}-1, batch 4",
        tuple(layers),
        tuple(weights),
        inputs,
        targets,
        learning_rate=0.1,
        loss="mse",
    )


def chain(layers: Sequence[Layer], ops: Ops) -> Callable[[Any, Sequence[Any]], Any]:
    """The network as a function of the batch and the parameters, out of a framework's ops.

    `ops` has "conv" and "linear", called as op(x, weight, bias, number), and "relu", "max_pool"
    and "flatten", called as op(x, number).

    >>> ops = {"linear": lambda x, w, b, _: x @ w.T + b, "relu": lambda x, _: np.maximum(x, 0)}
    >>> network = chain([("linear", 0), ("relu", 0)], ops)
    >>> network(np.ones((1, 2)), [np.array([[1, 2], [-1, -2]]), np.zeros(2)]).tolist()
    [[3.0, 0.0]]
    """
    calls: list[tuple[Callable[..., Any], int, int]] = []
    used = 0
    for kind, number in layers:
        calls.append((ops[kind], used if kind in WEIGHTED else -1, number))
        used += 2 * (kind in WEIGHTED)

    def network(x: Any, parameters: Sequence[Any]) -> Any:
        for op, at, number in calls:
            if at >= 0:
                x = op(x, parameters[at], parameters[at + 1], number)
            else:
                x = op(x, number)
        return x

    return network
