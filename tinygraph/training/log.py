"""Log: what a Trainer tells about a training, while it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tinygraph.base import ArgumentError
from tinygraph.distributed import leads


class Log:
    """What is told how a training goes: `Trainer(log=...)` takes one.  By itself it does nothing.

    A subclass overrides what it wants to hear; any object with the first four methods will do.  It
    may look at everything and must change nothing but `row`.  Of the ranks of a launch only the
    first one tells.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> class Losses(tg.training.Log):
    ...     def batch(self, trainer, loss):
    ...         print(trainer.steps, round(loss, 3))
    >>> data = tg.data.ArrayDataset(np.ones((4, 1), np.float32), np.zeros((4, 1), np.float32))
    >>> model = tg.nn.Linear(1, 1, bias=False)
    >>> _ = tg.nn.init.ones_(model.weight)
    >>> sgd = tg.optim.SGD(model.parameters(), lr=0.25)
    >>> trainer = tg.training.Trainer(model, sgd, tg.mse_loss, progress=False, log=Losses())
    >>> rows = trainer.fit(tg.data.DataLoader(data, batch_size=2))
    1 1.0
    2 0.25
    """

    def begin(self, trainer: Any, loader: Any) -> None:
        """A `fit` begins.  `trainer.steps` batches are done: what was told after them, by a process
        that died, is told again."""

    def batch(self, trainer: Any, loss: float) -> None:
        """Batch number `trainer.steps` was learnt; its gradients are still in the parameters."""

    def epoch(self, trainer: Any, row: dict[str, Any]) -> None:
        """An epoch is over, and validated.  `row` is what `fit` returns of it; what is added to it
        stands in log.jsonl too."""

    def close(self) -> None:
        """This `fit` is over, or was broken off."""

    def answers(self, answers: Mapping[str, Any]) -> None:
        """What a recipe's network says to the test data: see `Recipe.answers`.  Recipes tell it."""


TOLD = ("begin", "batch", "epoch", "close")  # what a Trainer calls


def checked_log(log: Any) -> Any:
    """The log that a Trainer tells: on other ranks than the first one that does nothing."""
    missing = [name for name in TOLD if not callable(getattr(log, name, None))]
    if log is not None and missing:
        expected = f"an object with the methods {', '.join(TOLD)}"
        way_out = "derive it from tg.training.Log, which has them all"
        raise ArgumentError(
            "Trainer", "log", expected, f"{log!r:.60} without {missing[0]}", way_out
        )
    return log if log is not None and leads() else Log()
