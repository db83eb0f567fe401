"""Every allocation of a training step fails in turn; the step must be as if never tried.

The network has everything that a step writes: running statistics, dropout, gradients that fan out,
an optimiser with state.  A twin that never meets a fault goes on beside it: after each failure both
train on a smaller batch and must have the same bits.
"""

from __future__ import annotations

import re

import numpy as np

import tinygraph as tg
from tests.faults.failing_allocator import ALLOCATOR
from tests.faults.tally import Tally
from tinygraph.base.errors import DeviceError
from tinygraph.training import Trainer

RULES = {
    "sgd": lambda p: tg.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-3, nesterov=True),
    "adam": lambda p: tg.optim.Adam(p, lr=0.01, amsgrad=True),
    "adamw": lambda p: tg.optim.AdamW(p, lr=0.01),
    "adadelta": lambda p: tg.optim.Adadelta(p, lr=1.0),
    "adagrad": lambda p: tg.optim.Adagrad(p, lr=0.1),
    "lion": lambda p: tg.optim.Lion(p, lr=0.01),
    "rmsprop": lambda p: tg.optim.RMSprop(p, lr=0.01, momentum=0.5),
}
RNG = np.random.default_rng(0)
X = RNG.standard_normal((8, 2, 8, 8)).astype(np.float32)
T = RNG.integers(0, 3, 8)
SMALLER = 3


class Residual(tg.nn.Module):
    """x + f(x): x fans out, so that backward sums gradients."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return x + self.inner(x)


def trainer(rule, compile=None):
    """A small network with every kind of state, the same each time."""
    tg.manual_seed(7)
    model = tg.nn.Sequential(
        tg.nn.Conv2d(2, 4, 3, padding=1),
        tg.nn.BatchNorm2d(4),
        tg.nn.ReLU(),
        tg.nn.MaxPool2d(2),
        Residual(tg.nn.Conv2d(4, 4, 3, padding=1)),
        tg.nn.Dropout(0.25),
        tg.nn.Flatten(),
        tg.nn.Linear(64, 3),
    )
    optimizer = RULES[rule](model.named_parameters())
    return Trainer(model, optimizer, tg.softmax_cross_entropy, progress=False, compile=compile)


def bits(worker):
    """Everything that a step changes, as bytes."""
    state = worker.optimizer.state_dict()["state"]
    arrays = {
        f"{name}/{key}": np.asarray(value)
        for name, own in state.items()
        for key, value in own.items()
    } | worker.model.state_dict()
    return (
        {name: array.tobytes() for name, array in arrays.items()},
        tg.random.default_generator.state_dict(),
    )


def after(rule, steps, batches):
    """A trainer after `steps` steps on all samples, and the bits after each of further batches."""
    worker = trainer(rule)
    with worker_in_training(worker):
        for _ in range(steps):
            worker.step(X, T)
        seen = [bits(worker)]
        for size in batches:
            worker.step(X[:size], T[:size])
            seen.append(bits(worker))
    return seen


def worker_in_training(worker):
    from tinygraph.training.evaluation import mode

    return mode(worker.model, training=True)


def fail_each(rule, steps, tally, every=1):
    """Fail each `every`-th allocation of the step after `steps` others."""
    before, smaller = after(rule, steps, [SMALLER])
    whole = after(rule, steps, [None])[1]
    worker = trainer(rule)
    with ALLOCATOR as memory, worker_in_training(worker):
        for _ in range(steps):
            worker.step(X, T)
        memory.arm(0)
        worker.step(X, T)
        points = memory.made
    tally.outcomes["points in a step"] = max(tally.outcomes["points in a step"], points)
    for k in range(1, points + 1, every):
        where = f"{rule}, after {steps} steps, allocation {k} of {points}"
        fault = _fail(rule, steps, k, before, smaller, whole)
        if fault in GOOD:
            tally.add(fault)
        else:
            tally.fail(f"{where}: {fault}")


GOOD = TAKEN_BACK, NO_PLAN = "step taken back", "no room for a plan: the step runs without one"


def _fail(rule, steps, k, before, smaller, whole):
    """What became of a step whose allocation k has failed: one of GOOD, or what is wrong."""
    worker = trainer(rule)
    with ALLOCATOR as memory, worker_in_training(worker):
        for _ in range(steps):
            worker.step(X, T)
        memory.arm(k)
        try:
            worker.step(X, T)
            return NO_PLAN if bits(worker) == whole else "the step did not fail"
        except DeviceError as error:
            message = str(error)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        memory.arm(0)
        if bits(worker) != before:
            return "the step left something changed"
        if any(p.grad is not None for p in worker.model.parameters()):
            return "the step left gradients"
        if not re.search(r"room for [\d,]+ bytes, an array \w+\[[\d, ]*\]", message):
            return f"no shape or bytes in: {message}"
        worker.step(X[:SMALLER], T[:SMALLER])
        if bits(worker) != smaller:
            return "a smaller batch gave other bits than without the failure"
    return TAKEN_BACK


def torment(every=1, seed=0):
    """Every allocation of the first step and of a later one, for each optimiser."""
    tally = Tally("failed allocations")
    for rule in RULES:
        for steps in (0, 2):
            fail_each(rule, steps, tally, every)
    return tally
