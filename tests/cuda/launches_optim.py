"""Launches of the kernels of optimisers and of gradient clipping."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tinygraph as tg
from tests.cuda.launch import F4, Launch
from tests.cuda.launches import Family
from tests.cuda.recorded import launches_in

# One element, a block exactly, a part of a second one.
SIZES = (1, 256, 300)
# Of parameters that share a launch.
TOGETHER = ((1,), (256, 0, 3), (300, 7))


def _steps(optimizer: Any, *settings: dict[str, Any]) -> Family:
    """Three steps of some parameters for each of some settings; the first has no state yet."""

    def launches(random: np.random.Generator) -> Iterator[Launch]:
        for number, chosen in enumerate(settings):
            for sizes in TOGETHER:
                starts = [random.standard_normal(n).astype(F4) for n in sizes]
                # The last ones are smaller, which amsgrad can tell.
                grads = [
                    [random.standard_normal(n).astype(F4) / scale for n in sizes]
                    for scale in (1, 1, 8)
                ]

                def work(
                    device: str,
                    starts: Any = starts,
                    grads: Any = grads,
                    chosen: dict[str, Any] = chosen,
                ) -> np.ndarray:
                    weights = [tg.Parameter(start.copy(), device=device) for start in starts]
                    steps = optimizer(weights, **chosen)
                    for step in grads:
                        for w, grad in zip(weights, step, strict=True):
                            w.grad = grad.copy()
                        steps.step()
                    return np.concatenate([w.numpy() for w in weights])

                yield from _agreeing(work, f"sizes={sizes} settings={number}")

    return launches


def _clipping(random: np.random.Generator) -> Iterator[Launch]:
    for n in (0, 1, 2, *SIZES):
        grads = [random.standard_normal(size).astype(F4) for size in (max(n, 1), 700)]
        if n < 3:  # norms that are zero, infinite, no number
            grads = [np.zeros_like(grads[0]), np.full_like(grads[1], (0, np.inf, np.nan)[n])]
        for norm_type in (2.0, 1.0, 3.0, math.inf):

            def clip_norm(
                device: str, grads: Any = grads, norm_type: float = norm_type
            ) -> np.ndarray:
                weights = _with_gradients(grads, device)
                norm = tg.optim.clip_grad_norm(weights, 0.5, norm_type)
                return np.concatenate([[norm], *[w.grad for w in weights]])

            yield from _agreeing(clip_norm, f"n={n} norm={norm_type}")

        def clip_value(device: str, grads: Any = grads) -> np.ndarray:
            weights = _with_gradients(grads, device)
            tg.optim.clip_grad_value(weights, 0.5)
            return np.concatenate([w.grad for w in weights])

        yield from _agreeing(clip_value, f"n={n} value")


def _lion(random: np.random.Generator) -> Iterator[Launch]:
    yield from _steps(tg.optim.Lion, {"lr": 0.1}, {"lr": 0.1, **DECAY})(random)

    def undecided(device: str) -> np.ndarray:
        (w,) = _with_gradients([np.array([0, np.nan, -1], F4)], device)
        tg.optim.Lion([w], lr=0.1).step()
        return w.numpy()

    yield from _agreeing(undecided, "0 and NaN")


def _with_gradients(grads: list[np.ndarray], device: str) -> list[tg.Parameter]:
    weights = [tg.Parameter(np.zeros_like(grad), device=device) for grad in grads]
    for w, grad in zip(weights, grads, strict=True):
        w.grad = grad.copy()
    return weights


def _agreeing(work: Callable[[str], np.ndarray], label: str) -> Iterator[Launch]:
    """The launches of what gives the same numbers on numpy and on the emulator."""
    got: list[np.ndarray] = []
    yield from launches_in(label, lambda: got.append(work("emulator")))
    with np.errstate(invalid="ignore"):
        expected = work("cpu")
    np.testing.assert_allclose(got[0], expected, rtol=2e-4, atol=2e-5, err_msg=label)


DECAY = {"weight_decay": 0.1}
AMSGRAD = {"amsgrad": True, "betas": (0.9, 0.5)}  # the mean of squares falls within a step
FAMILIES: dict[str, Family] = {
    "adam.cu": _steps(tg.optim.Adam, {}, DECAY, AMSGRAD),
    "adamw.cu": _steps(tg.optim.AdamW, {}, DECAY, AMSGRAD),
    "adadelta.cu": _steps(tg.optim.Adadelta, {}, DECAY),
    "adagrad.cu": _steps(tg.optim.Adagrad, {}, DECAY),
    "lion.cu": _lion,
    "rmsprop.cu": _steps(
        tg.optim.RMSprop,
        {},
        DECAY,
        {"centered": True},
        {"momentum": 0.9},
        {"momentum": 0.9, "centered": True},
    ),
    "clipping.cu": _clipping,
}
