"""A rehearsal: one batch forward and backward, from which nothing is learnt."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tinygraph.data import DataLoader
from tinygraph.engine import default_generator
from tinygraph.nn import Module
from tinygraph.optim import Optimizer
from tinygraph.training.evaluation import first_batch, mode


@contextmanager
def unlearnt(model: Module, optimizer: Optimizer) -> Iterator[None]:
    """In training mode, and afterwards everything is as before."""
    before, draws = model.state_dict(), default_generator.state_dict()
    try:
        with mode(model, training=True):
            yield
    finally:
        optimizer.zero_grad()
        model.load_state_dict(before)  # running statistics have moved
        default_generator.load_state_dict(draws)


def rehearse(
    model: Module, optimizer: Optimizer, differentiate: Callable[..., Any], loader: DataLoader
) -> dict[str, Any]:
    """What `Trainer.rehearse` finds; the model is as before."""
    inputs, labels = first_batch(loader)
    seconds = []
    with unlearnt(model, optimizer):
        for _ in range(3):
            started = time.perf_counter()
            loss, _, _ = differentiate(inputs, labels)
            seconds.append(time.perf_counter() - started)
    return {
        "batch": " and ".join(f"{part.dtype} {part.shape}" for part in (inputs, labels)),
        "loss": float(loss.item()),
        "step_seconds": sorted(seconds)[1],
        "batches": len(loader),
    }
