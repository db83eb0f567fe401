"""Launches of the kernels of losses that compare two arrays element by element."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tests.cuda.launch import BLOCK, F4, F8, FLAT, I8, Launch, Maker, null
from tests.cuda.launches import Family
from tinygraph.cuda import Out


def _forward(
    launch: Maker,
    n: int,
    grid: int,
    arrays: tuple[np.ndarray, ...],
    losses: np.ndarray,
    *constants: float,
) -> Iterator[Launch]:
    """Each loss by itself, and the sums of each block."""
    name = f"{launch.file.removesuffix('.cu')}_forward<float>"
    own = np.r_[np.arange(n // 4 * 4) // 4, np.arange(n % 4)]  # packs of 4 floats, and the rest
    owner = own // BLOCK % grid  # the block that owns an element
    sums = np.array([losses[owner == i].sum() / 2 for i in range(grid)], F4)
    each = Out(losses.astype(F4))
    yield launch(name, grid, *arrays, each, null(), n, 1, *constants, label=f"n={n} each")
    yield launch(name, grid, *arrays, null(), Out(sums), n, 2, *constants, label=f"n={n} sum")


def _residual(
    file: str,
    loss: Callable[[np.ndarray], np.ndarray],
    slope: Callable[[np.ndarray], np.ndarray],
    *constants: float,
) -> Family:
    """The launches of a loss of d = x - y."""

    def launches(random: np.random.Generator) -> Iterator[Launch]:
        for n, grid in FLAT:
            x, y = (2 * random.standard_normal((2, n))).astype(F4)
            x[1::5] = y[1::5]
            d = x - y
            for keep in (Out(slope(d)), null()):
                yield from _forward(Maker(file), n, grid, (x, y, keep), loss(d), *constants)

    return launches


def _clip(d: np.ndarray) -> np.ndarray:
    return np.clip(d, -1.5, 1.5)


def _shared(random: np.random.Generator) -> Iterator[Launch]:
    launch = Maker("losses.cu")
    for n, grid in FLAT:
        slope, gloss = random.standard_normal((2, n)).astype(F4)
        total = np.array([slope.sum() / 4], F4)
        yield launch("loss_finish<float>", 1, slope, Out(total), n, 4, label=f"n={n}")
        numbers = random.integers(1, 4, n).astype(I8)
        for divides in (0, 1):
            total = np.array([slope.sum() / (numbers.sum() if divides else 1)], F4)
            yield launch(
                "sum_of_partials<float>",
                1,
                slope,
                numbers,
                Out(total),
                Out(numbers.sum(keepdims=True)),
                n,
                divides,
                label=f"n={n} {divides=}",
            )
        for g in (gloss, np.array([3], F4)):
            gx = F4(0.5) * g * slope
            for gradients in ((Out(gx), Out(-gx)), (Out(gx), null()), (null(), Out(-gx))):
                yield launch(
                    "residual_loss_backward<float>",
                    grid,
                    g,
                    slope,
                    *gradients,
                    n,
                    0.5,
                    int(g is gloss),
                    label=f"n={n} each={g is gloss}",
                )


def _logits(random: np.random.Generator) -> Iterator[Launch]:
    launch = Maker("binary_cross_entropy_with_logits.cu")
    for n, grid in FLAT:
        gloss, x, y = random.standard_normal((3, n)).astype(F4)
        exact = x.astype(F8)
        losses = np.maximum(exact, 0) - exact * y + np.log1p(np.exp(-np.abs(exact)))
        yield from _forward(launch, n, grid, (x, y), losses)
        yield from _backward(launch, n, grid, gloss, (x, y), 1 / (1 + np.exp(-exact)) - y, -exact)


def _probabilities(random: np.random.Generator) -> Iterator[Launch]:
    launch = Maker("binary_cross_entropy.cu")
    for n, grid in FLAT:
        gloss = random.standard_normal(n).astype(F4)
        x, y = random.random((2, n)).astype(F4)
        x[1::9], x[2::9] = 0, 1
        exact = x.astype(F8)
        with np.errstate(divide="ignore"):
            yes, no = (np.maximum(np.log(p), -100) for p in (exact, 1 - exact))
        yield from _forward(launch, n, grid, (x, y), -(y * yes + (1 - y) * no))
        slope = (exact - y) / np.maximum(exact * (1 - exact), 1e-12)
        yield from _backward(launch, n, grid, gloss, (x, y), slope, no - yes)
    x, y = np.full(5, 0.5, F4), np.array([-0.5, 0.0, 0.25, 1.0, 1.5], F4)  # two are no labels
    yield from _forward(launch, 5, 1, (x, y), np.where((y < 0) | (y > 1), np.nan, np.log(2.0)))


def _backward(
    launch: Maker,
    n: int,
    grid: int,
    gloss: np.ndarray,
    arrays: tuple[np.ndarray, ...],
    slope_x: np.ndarray,
    slope_y: np.ndarray,
) -> Iterator[Launch]:
    name = f"{launch.file.removesuffix('.cu')}_backward<float>"
    for g in (gloss, np.array([3], F4)):
        gx, gy = (Out((0.5 * g * slope).astype(F4)) for slope in (slope_x, slope_y))
        for gradients in ((gx, gy), (gx, null()), (null(), gy)):
            yield launch(
                name,
                grid,
                g,
                *arrays,
                *gradients,
                n,
                0.5,
                int(g is gloss),
                label=f"n={n} each={g is gloss}",
            )


FAMILIES = {
    "losses.cu": _shared,
    "mse_loss.cu": _residual("mse_loss.cu", np.square, np.copy),
    "half_squared_error.cu": _residual("half_squared_error.cu", lambda d: d * d / 2, np.copy),
    "l1_loss.cu": _residual("l1_loss.cu", np.abs, np.sign),
    "huber_loss.cu": _residual(
        "huber_loss.cu", lambda d: _clip(d) * (d - _clip(d) / 2), _clip, 1.5
    ),
    "binary_cross_entropy_with_logits.cu": _logits,
    "binary_cross_entropy.cu": _probabilities,
}
