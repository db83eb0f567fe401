"""A handful of results against numpy; the first wrong one ends the section, and `make gpu`.

They go from the simplest launch to what can go wrong in more ways: each GEMM, a convolution, the
compiled step of the seed network, a compiled plan in arrays that stay, a captured step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tinygraph as tg
from benchmarks.gpu import ours
from benchmarks.gpu.page import Result
from benchmarks.gpu.room import Room
from benchmarks.report import table
from benchmarks.workloads import seed_network
from tinygraph import nn

TITLE = "First results against numpy"
STEPS = 5  # of training; a captured step is a graph from the third on
BOUND = {ours.STRICT: 1e-4, ours.TF32: 2e-2}  # of the largest number of a result

Check = Callable[[str], Sequence[np.ndarray]]  # a device's name -> results


def checks(room: Room) -> dict[str, tuple[Check, str]]:
    """What is computed on the device and in numpy, and in which precision."""
    large = 40 if room.rehearse else 512
    found: dict[str, tuple[Check, str]] = {"relu": (_relu, ours.STRICT)}
    for m, k, n in ((20, 30, 25), (130, 70, 150), (large, large + 8, large)):
        found[f"matmul {m}x{k}x{n}"] = (lambda device, s=(m, k, n): _matmul(device, s), ours.STRICT)
    found[f"matmul {large}, tf32"] = (
        lambda device: _matmul(device, (large, large, large)),
        ours.TF32,
    )
    found["convolution with gradients"] = (_convolution, ours.STRICT)
    found["training steps, seed network compiled"] = (_steps("compiled"), ours.STRICT)
    found["training steps, compiled plan with dropout"] = (_planned, ours.STRICT)
    if room.device == "cuda":
        found["training steps, captured"] = (_captured, ours.STRICT)
    return found


def run(room: Room) -> Result:
    result = Result(TITLE)
    rows: list[list[str]] = []
    for name, (check, precision) in checks(room).items():
        start = time.perf_counter()
        want = check("cpu")
        with ours.precision(precision):
            worst = difference(check(room.device), want)
        taken = time.perf_counter() - start
        good = worst < BOUND[precision]  # a NaN is not
        rows.append([name, f"{worst:.1e}", "yes" if good else "**no**", f"{taken:.1f}"])
        result.blocks = [table(["result", "largest difference", "right", "s"], rows)]
        if not good:
            result.failed = f"{name} is wrong, and nothing after it was tried"
            break
        room.tell(result)
    return result


def difference(got: Sequence[np.ndarray], want: Sequence[np.ndarray]) -> float:
    """The largest difference, over the largest number of its array.

    >>> difference([np.array([1.0, 2.0])], [np.array([1.0, 4.0])])
    0.5
    """
    worst = [
        np.abs(g - w).max() / max(float(np.abs(w).max()), 1e-30)
        for g, w in zip(got, want, strict=True)
    ]
    return float(np.max(worst))


def _relu(device: str) -> list[np.ndarray]:
    x = np.random.default_rng(0).standard_normal(10_007, np.float32)
    return [tg.relu(tg.Tensor(x, device=device)).numpy()]


def _matmul(device: str, sizes: tuple[int, int, int]) -> list[np.ndarray]:
    m, k, n = sizes
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    x = tg.Tensor(a, device=device, requires_grad=True)
    y = tg.matmul(x, tg.Tensor(b, device=device))
    y.sum().backward()
    return [y.numpy(), x.device.to_numpy(x.grad)]


def _convolution(device: str) -> list[np.ndarray]:
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal((4, 16, 14, 14), np.float32), rng.standard_normal((40, 16, 3, 3))
    gy = rng.standard_normal((4, 40, 14, 14), np.float32)
    return ours.convolution(x, w.astype(np.float32), gy, 1, device)[2]()


def _steps(way: str) -> Check:
    def losses(device: str) -> list[np.ndarray]:
        step = ours.steps(seed_network(8, 32, size=12), device)[way]
        return [np.array([float(step().item()) for _ in range(STEPS)])]

    return losses


def _captured(device: str) -> Sequence[np.ndarray]:
    return _steps("eager" if device == "cpu" else "eager, captured")(device)


def _planned(device: str) -> list[np.ndarray]:
    """A plan that keeps its arrays, with random numbers and labels among them."""
    tg.manual_seed(0)
    rng = np.random.default_rng(3)
    x, labels = rng.standard_normal((32, 20), np.float32), rng.integers(0, 7, 32)
    layers: list[Any] = [nn.Linear(20, 33), nn.LayerNorm(33), nn.ReLU(), nn.Dropout(0.3)]
    model = nn.Sequential(*layers, nn.Linear(33, 7)).to(device)
    optimizer = tg.optim.SGD(model.parameters(), lr=0.1)

    @tg.compile
    def step(x: Any, y: Any) -> Any:
        loss = tg.softmax_cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    there = [tg.Tensor(array, device=device) for array in (x, labels)]
    return [np.array([float(step(*there).item()) for _ in range(STEPS)])]
