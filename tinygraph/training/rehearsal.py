"""A rehearsal: one batch forward and backward, from which nothing is learnt."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tinygraph.data import DataLoader
from tinygraph.nn import Module
from tinygraph.optim import Optimizer
from tinygraph.random import default_generator
from tinygraph.training.evaluation import first_batch, mode


def rehearse(
    model: Module, optimizer: Optimizer, differentiate: Callable[..., Any], loader: DataLoader
) -> dict[str, Any]:
    """What `Trainer.rehearse` finds; the model is as before."""
    inputs, labels = first_batch(loader)
    before, draws = model.state_dict(), default_generator.state_dict()
    seconds = []
    with mode(model, training=True):
        for _ in range(3):
            started = time.perf_counter()
            loss, _, _ = differentiate(inputs, labels)
            seconds.append(time.perf_counter() - started)
    optimizer.zero_grad()
    model.load_state_dict(before)  # running statistics have moved
    default_generator.load_state_dict(draws)
    return {
        "batch": " and ".join(f"{part.dtype} {part.shape}" for part in (inputs, labels)),
        "loss": float(loss.item()),
        "step_seconds": sorted(seconds)[1],
        "batches": len(loader),
    }
