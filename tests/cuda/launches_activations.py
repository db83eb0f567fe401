"""Launches of the kernels of activations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from tests.cuda.launch import F4, F8, FLAT, Launch, Maker
from tests.cuda.launches import Family
from tinygraph.cuda import Out

# An activation and its slope, of float64.
Functions = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def _activation(
    file: str, functions: Functions, *constants: float, saves: str = "x", template: str = ""
) -> Family:
    """The launches of forward and backward, which takes x or y as forward has saved it."""
    stem, types = file.removesuffix(".cu"), f"<float{template}>"

    def launches(random: np.random.Generator) -> Iterator[Launch]:
        launch = Maker(file)
        for n, grid in FLAT:
            x = (2 * random.standard_normal(n)).astype(F4)
            y, slope = functions(x.astype(F8))
            gy = random.standard_normal(n).astype(F4)
            out, gx = Out(y.astype(F4)), Out((gy * slope).astype(F4))
            saved = x if saves == "x" else out.array
            label = f"n={n}"
            yield launch(f"{stem}_forward{types}", grid, x, out, n, *constants, label=label)
            yield launch(f"{stem}_backward{types}", grid, gy, saved, gx, n, *constants, label=label)

    return launches


def _leaky_relu(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.where(x > 0, x, x / 4), np.where(x > 0, 1, 0.25)


def _elu(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.where(x > 0, x, np.expm1(x) / 4), np.where(x > 0, 1, np.exp(x) / 4)


def _sigmoid(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    y = 1 / (1 + np.exp(-x))
    return y, y * (1 - y)


def _tanh(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.tanh(x), 1 - np.tanh(x) ** 2


def _softplus(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    z = 2 * x
    slope = np.where(z > 1.5, 1, 1 / (1 + np.exp(-z)))
    return np.where(z > 1.5, x, np.log1p(np.exp(z)) / 2), slope


def _gelu_normal(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    gate = np.array([math.erfc(-v / math.sqrt(2)) / 2 for v in x])
    return x * gate, gate + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _gelu_tanh(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    gate = (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2
    cubic = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x**2)
    return x * gate, gate + x * 2 * gate * (1 - gate) * cubic


def _gelu(random: np.random.Generator) -> Iterator[Launch]:
    yield from _activation("gelu.cu", _gelu_normal, template=", Normal")(random)
    yield from _activation("gelu.cu", _gelu_tanh, template=", Tanh")(random)
    # Where x times a gate or a slope of 0 would be NaN.
    launch, n = Maker("gelu.cu"), 3
    x, gy = np.array([-np.inf, np.inf, np.nan], F4), np.ones(n, F4)
    y, gx = np.array([0, np.inf, np.nan], F4), np.array([0, 1, np.nan], F4)
    for gate in ("Normal", "Tanh"):
        forward, backward = (f"gelu_{way}<float, {gate}>" for way in ("forward", "backward"))
        yield launch(forward, 1, x, Out(y), n, label="infinities")
        yield launch(backward, 1, gy, x, Out(gx), n, label="infinities")


FAMILIES = {
    "leaky_relu.cu": _activation("leaky_relu.cu", _leaky_relu, 0.25),
    "elu.cu": _activation("elu.cu", _elu, 0.25),
    "sigmoid.cu": _activation("sigmoid.cu", _sigmoid, saves="y"),
    "tanh.cu": _activation("tanh.cu", _tanh, saves="y"),
    "softplus.cu": _activation("softplus.cu", _softplus, 2, 1.5),
    "gelu.cu": _gelu,
}
