"""Launches of the kernels that treat an array as a flat row of numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tests.cuda.launch import F4, F8, FLAT, Launch, Maker, Shifted, Updated, null
from tinygraph.cuda import Out


def _relu(random: np.random.Generator) -> Iterator[Launch]:
    launch = Maker("relu.cu")
    for n, grid in FLAT:
        x = random.standard_normal(n).astype(F4)
        x[3::7] = np.nan
        y = np.where(x <= 0, F4(0), x)
        gy = random.standard_normal(n).astype(F4)
        gx = np.where(y != 0, gy, F4(0))
        for given, out in ((x, Out(y)), (Shifted(x), Out(y)), (x, Shifted(Out(y)))):
            yield launch("unary_forward<float, Relu>", grid, given, out, n, 0, 0, label=f"n={n}")
        for given, out in ((y, Out(gx)), (Shifted(y), Out(gx)), (y, Shifted(Out(gx)))):
            yield launch(
                "unary_backward<float, Relu>", grid, gy, given, out, n, 0, 0, label=f"n={n}"
            )


# Parameters of one launch: their sizes, the most blocks of one, blocks that are too many.
TOGETHER = [
    ((1,), 1024, 0),
    ((4096,), 1024, 0),
    ((4099, 0, 1, 257), 1024, 1),
    ((8195, 3, 520), 1, 0),
    ((2, 3, 4100, 4, 5, 6, 7, 300), 1, 1),
    ((4100, *range(14, 45)), 1024, 1),
]


def _sgd(random: np.random.Generator) -> Iterator[Launch]:
    momentum, fresh = 0.75, 0.25
    for sizes, most, too_many in TOGETHER:
        parts = 8 if len(sizes) <= 8 else 32
        launch = Maker("sgd.cu", {"PARTS": parts})

        def all_of(arguments: Sequence[Any], parts: int = parts) -> list[Any]:
            """The arguments of some parameters, and null pointers for the others."""
            return [*arguments, *[null() for _ in range(parts - len(arguments))]]

        counts = [min(-(-n // 4096), most) for n in sizes]
        lrs = 0.5 + np.arange(len(sizes), dtype=F4) / 8  # of each parameter its own
        made = [random.standard_normal((3, n)).astype(F4) for n in sizes]
        numbers = (*sizes, *[0] * (parts - len(sizes)), most, lrs)
        for decay in (0.0, 0.125):
            plain, grads = [], []
            with_momentum: dict[tuple[int, int], list[tuple[Any, Any]]] = {}
            for lr, (start, grad, buffer) in zip(lrs, made, strict=True):
                value = start.copy()
                if not decay:
                    value[5::9] = np.inf  # without decay, it must stay out of the gradient
                g = grad + F4(decay) * value if decay else grad
                update = Updated(value, value - lr * g)
                plain.append(Shifted(update) if len(plain) % 3 == 1 else update)
                grads.append(grad if len(grads) % 3 else Shifted(grad))
                for nesterov, first in ((0, 0), (1, 0), (0, 1)):
                    b = g if first else F4(momentum) * buffer + F4(fresh) * g
                    step = g + F4(momentum) * b if nesterov else b
                    with_momentum.setdefault((nesterov, first), []).append(
                        (Updated(value, value - lr * step), Out(b) if first else Updated(buffer, b))
                    )
            grid, label = sum(counts) + too_many, f"sizes={sizes} decay={decay}"
            yield launch(
                "sgd_update<float>",
                grid,
                *all_of(plain),
                *all_of([grad for _, grad, _ in made]),
                *numbers,
                decay,
                label=label,
            )
            for (nesterov, first), both in with_momentum.items():
                values, buffers = zip(*both, strict=True)
                yield launch(
                    "sgd_momentum_update<float>",
                    grid,
                    *all_of(values),
                    *all_of(grads),
                    *all_of(buffers),
                    *numbers,
                    momentum,
                    decay,
                    fresh,
                    nesterov,
                    first,
                    label=f"{label} nesterov={nesterov} first={first}",
                )


def _dropout(random: np.random.Generator) -> Iterator[Launch]:
    launch = Maker("dropout.cu")
    p, scale = 0.25, 2.0
    for n, grid in FLAT:
        x = random.standard_normal(n).astype(F4)
        r = (random.integers(0, 8, n) / 8).astype(F4)  # some are p itself
        keep = r >= p
        y = x * keep * F4(scale)
        for mask in (Out(keep), null(np.bool_)):
            yield launch(
                "dropout_forward<float>", grid, x, r, mask, Out(y), n, p, scale, label=f"n={n}"
            )
        yield launch("dropout_backward<float>", grid, x, keep, Out(y), n, scale, label=f"n={n}")


def _random_numbers(random: np.random.Generator) -> Iterator[Launch]:
    launch = Maker("random.cu")
    seed, stream, step = 2**64 - 3, 7, 5
    # numpy counts blocks of four words in the low end, and counts up before it generates.
    for first, n, grid in ((0, 1, 1), (0, 1024, 1), (3, 1100, 1), (6, 700, 2)):
        generator: Any = np.random.Philox(counter=(step << 128) - 1, key=stream << 64 | seed)
        words = generator.random_raw(first + n)[first:]
        for name, dtype, shift in (("float", F4, 40), ("double", F8, 11)):
            out = (words >> np.uint64(shift)).astype(dtype) * dtype(2.0 ** (shift - 64))
            for start, key in (
                (null(np.uint64), (seed, stream)),
                (np.array([seed, stream - 2], np.uint64), (5, 2)),
            ):
                yield launch(
                    f"uniform<{name}>",
                    grid,
                    Out(out),
                    n,
                    *key,
                    step,
                    first,
                    start,
                    label=f"first={first} n={n}",
                )


FAMILIES = {"relu.cu": _relu, "sgd.cu": _sgd, "dropout.cu": _dropout, "random.cu": _random_numbers}
