"""How long a training step takes, beside PyTorch where it is installed: `make bench`.

    seed network    conv 3x3 with 256 filters, ReLU, max-pool 2x2, linear, softmax cross-entropy,
                    SGD on batches of 100 images of 28x28
    tiny MLP        2-8-1, ReLU, MSE, SGD on batches of 4: nothing but overhead per node

Both sides start from the same weights and must agree on the losses of three steps before anything
is timed.  Then they take turns, so that a machine whose speed drifts slows both; the figure to
quote is the median of the ratios, with the smallest and the largest.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable

import numpy as np

import tinygraph as tg

Step = Callable[[], float]
F = np.float32


def seed_network(batch: int, filters: int) -> tuple[Step, Step | None, int]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((batch, 1, 28, 28)).astype(F)
    y = rng.integers(0, 10, batch)
    weights = [
        (rng.standard_normal((filters, 1, 3, 3)) / 3).astype(F),
        np.zeros(filters, F),
        (rng.standard_normal((10, 169 * filters)) / np.sqrt(169 * filters)).astype(F),
        np.zeros(10, F),
    ]
    ours = [tg.Parameter(w) for w in weights]
    optimizer = tg.optim.SGD(ours, lr=0.01)

    def step() -> float:
        h = tg.max_pool2d(tg.relu(tg.conv2d(x, ours[0], ours[1])), 2)
        loss = tg.softmax_cross_entropy(tg.linear(tg.flatten(h, 1), ours[2], ours[3]), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    torch = import_torch()
    if torch is None:
        return step, None, 5
    f = torch.nn.functional
    theirs = [torch.nn.Parameter(torch.tensor(w)) for w in weights]
    torch_optimizer = torch.optim.SGD(theirs, lr=0.01)
    tx, ty = torch.tensor(x), torch.tensor(y)

    def torch_step() -> float:
        h = f.max_pool2d(f.relu(f.conv2d(tx, theirs[0], theirs[1])), 2)
        loss = f.cross_entropy(f.linear(torch.flatten(h, 1), theirs[2], theirs[3]), ty)
        torch_optimizer.zero_grad()
        loss.backward()
        torch_optimizer.step()
        return loss.item()

    return step, torch_step, 5


def tiny_mlp() -> tuple[Step, Step | None, int]:
    rng = np.random.default_rng(0)
    x = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], F)
    y = np.array([[0], [1], [1], [0]], F)
    weights = [rng.standard_normal(s).astype(F) for s in ((8, 2), (8,), (1, 8), (1,))]
    ours = [tg.Parameter(w) for w in weights]
    optimizer = tg.optim.SGD(ours, lr=0.05)

    def step() -> float:
        h = tg.relu(tg.linear(x, ours[0], ours[1]))
        loss = tg.mse_loss(tg.linear(h, ours[2], ours[3]), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    torch = import_torch()
    if torch is None:
        return step, None, 500
    f = torch.nn.functional
    theirs = [torch.nn.Parameter(torch.tensor(w)) for w in weights]
    torch_optimizer = torch.optim.SGD(theirs, lr=0.05)
    tx, ty = torch.tensor(x), torch.tensor(y)

    def torch_step() -> float:
        h = f.relu(f.linear(tx, theirs[0], theirs[1]))
        loss = f.mse_loss(f.linear(h, theirs[2], theirs[3]), ty)
        torch_optimizer.zero_grad()
        loss.backward()
        torch_optimizer.step()
        return loss.item()

    return step, torch_step, 500


def import_torch():  # type: ignore[no-untyped-def]  # the module, or None
    try:
        import torch
    except ImportError:
        return None
    return torch


def burst(step: Step, count: int) -> float:
    """Mean seconds of a step over a few in a row."""
    start = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - start) / count


def compare(name: str, step: Step, torch_step: Step | None, count: int, rounds: int = 9) -> None:
    """Agree on three losses, then take turns and print medians."""
    losses = [step() for _ in range(3)]
    if torch_step is not None:
        np.testing.assert_allclose([torch_step() for _ in range(3)], losses, rtol=1e-4)
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(burst(step, count))
        if torch_step is not None:
            theirs.append(burst(torch_step, count))
    line = f"{name:<38} tinygraph {statistics.median(ours) * 1e3:8.3f} ms"
    if theirs:
        ratios = sorted(a / b for a, b in zip(ours, theirs, strict=True))
        line += (
            f"   PyTorch {statistics.median(theirs) * 1e3:8.3f} ms   ratio "
            f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        )
    print(line, flush=True)


def main() -> None:
    torch = import_torch()
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    core = os.environ.get("OPENBLAS_CORETYPE", "not set (native)")
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
          f"numpy {np.__version__} with {blas.get('name')} {blas.get('version')}, "
          f"OPENBLAS_CORETYPE {core}")  # fmt: skip
    if torch is None:
        print("PyTorch is not installed: only our own times. `pip install torch` adds the ratio.")
    else:
        threads = torch.get_num_threads()
        print(f"PyTorch {torch.__version__}, eager, {threads} threads, default memory")
    compare("seed network, batch 100, 256 filters", *seed_network(100, 256))
    compare("tiny MLP 2-8-1, batch 4", *tiny_mlp())


if __name__ == "__main__":
    main()
