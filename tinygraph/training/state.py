"""What the next batch of a training depends on, and how it is put into one file.

    model, optimizer, schedule    their own state_dicts; the optimiser's goes by parameter names
    generator                     seed and next stream of tinygraph's random numbers
    loaders                       epoch, position and settings of each; the order of the samples as
                                  a SHA-256, for it follows from seed and epoch
    position                      epochs, batches, means of the epoch under way, best epoch, log

In the file, arrays keep their place in this tree as their name, such as
"optimizer/state/0.weight/momentum_buffer".  All else is JSON in one array of bytes, "document";
JSON keeps Python's floats to the last bit.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from tinygraph.data import DataLoader
from tinygraph.errors import CheckpointError, explain
from tinygraph.nn import Module
from tinygraph.optim import Optimizer, Schedule
from tinygraph.random import default_generator
from tinygraph.shapes import Array
from tinygraph.training.evaluation import Means

FORMAT = 1  # raised when a state can no longer be read by the version before
Tree = dict[str, Any]


@dataclass
class Position:
    """How far a training has come.

    Attributes
    ----------
    epoch, batch, steps : int
        Epochs done, batches done of the next one, batches done over all.
    first : int
        Epochs that were done before the present `fit`.
    seconds, epoch_seconds : float
        Time spent in the present `fit`, and in learning in the epoch under way.
    best : dict or None
        The best epoch so far on the validation data: `epoch`, `loss`, `accuracy` if there is one.
    rows : list of dict
        The log.
    """

    epoch: int = 0
    batch: int = 0
    steps: int = 0
    first: int = 0
    seconds: float = 0.0
    epoch_seconds: float = 0.0
    best: dict[str, Any] | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    means: Means = field(default_factory=Means)

    def begin_fit(self) -> None:
        """A `fit` begins that nothing was done of."""
        self.first, self.seconds = self.epoch, 0.0

    def count_batch(self, loss: float, hits: int | None, samples: int, seconds: float) -> None:
        """A batch is done."""
        self.means.add(loss, hits, samples)
        self.batch += 1
        self.steps += 1
        self.seconds += seconds
        self.epoch_seconds += seconds

    def close_epoch(self, row: dict[str, Any]) -> None:
        """An epoch is done, with this row of the log."""
        self.epoch += 1
        self.batch, self.epoch_seconds, self.means = 0, 0.0, Means()
        self.rows.append(row)

    def note_best(self, validation: Mapping[str, float]) -> bool:
        """Whether the epoch that was just closed is the best so far.

        The higher accuracy is better and, where that is equal or absent, the lower loss.
        """
        if not math.isfinite(validation["loss"]):
            return False
        if self.best is None or _quality(validation) > _quality(self.best):
            self.best = {"epoch": self.epoch, **validation}
        return self.best["epoch"] == self.epoch

    def state_dict(self) -> Tree:
        """Everything as plain values."""
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**own, "rows": [*self.rows], "means": dict(vars(self.means))}

    def load_state_dict(self, saved: Tree) -> None:
        """Go on where `state_dict` was taken."""
        for f in fields(self):
            setattr(self, f.name, saved[f.name])
        self.rows, self.means = [*saved["rows"]], Means(**saved["means"])


def _quality(validation: Mapping[str, float]) -> tuple[float, float]:
    return validation.get("accuracy", 0.0), -validation["loss"]


# ---- the parts of a training --------------------------------------------------------------------


@dataclass
class Members:
    """The parts of a training that keep a state from one batch to the next."""

    model: Module
    optimizer: Optimizer
    schedule: Schedule | None
    position: Position

    def capture(self) -> Tree:
        """Copies of all states."""
        return {
            "format": FORMAT,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": None if self.schedule is None else self.schedule.state_dict(),
            "generator": default_generator.state_dict(),
            "position": self.position.state_dict(),
        }

    def restore(self, saved: Tree) -> None:
        """Go on where `capture` was called.

        Raises
        ------
        CheckpointError
            The state belongs to other parts.  Nothing was changed.
        """
        before = self.capture()
        try:
            self._restore(saved)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self._restore(before)
            raise CheckpointError(
                explain("resume", "state", "the state of a training", f"{error!r}",
                        "resume with the version of tinygraph that saved it")
            ) from None  # fmt: skip
        except BaseException:
            self._restore(before)
            raise

    def _restore(self, saved: Tree) -> None:
        if saved["format"] != FORMAT:
            raise CheckpointError(
                explain("resume", "state", f"format {FORMAT}", saved["format"],
                        "resume with the version of tinygraph that saved it")
            )  # fmt: skip
        if (self.schedule is None) != (saved["schedule"] is None):
            with_without = ("a schedule, as the run has", "none")
            expected, got = with_without if self.schedule is None else with_without[::-1]
            raise CheckpointError(
                explain("resume", "schedule", expected, got, "make the Trainer as it was made")
            )
        if self.schedule is not None:
            self.schedule.require_own(saved["schedule"])
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        if self.schedule is not None:
            self.schedule.load_state_dict(saved["schedule"])
            self.optimizer.load_state_dict(saved["optimizer"])  # a rate that was set by hand
        default_generator.load_state_dict(saved["generator"])
        self.position.load_state_dict(saved["position"])


@dataclass
class Loaders:
    """What a `fit` gets its batches from."""

    train: DataLoader
    validation: DataLoader | None = None

    def capture(self) -> Tree:
        """Where both stand."""
        held_out = self.validation
        return {
            "train": self.train.state_dict(),
            "order": self._order(),
            "validation": None if held_out is None else held_out.state_dict(),
        }

    def restore(self, saved: Tree) -> None:
        """Go on where `capture` was called; CheckpointError for other loaders."""
        if (self.validation is None) != (saved["validation"] is None):
            with_without = ("a loader, as the run has", "none")
            expected, got = with_without if self.validation is None else with_without[::-1]
            raise CheckpointError(
                explain("resume", "validation_loader", expected, got, "call fit as it was called")
            )
        before = self.train.state_dict()
        try:
            self.train.load_state_dict(saved["train"])
            if self._order() != saved["order"]:
                raise CheckpointError(
                    explain("resume", "train_loader", "the order of samples that the run had",
                            "another one", "use the version of tinygraph that saved it")
                )  # fmt: skip
            if self.validation is not None:
                self.validation.load_state_dict(saved["validation"])
        except BaseException:
            self.train.load_state_dict(before)
            raise

    def _order(self) -> str:
        order = np.asarray(self.train.order(self.train.epoch), "<i8")
        return hashlib.sha256(order.tobytes()).hexdigest()


# ---- to and from arrays -------------------------------------------------------------------------

_ARRAY, _TUPLE, _DOCUMENT = "__array__", "__tuple__", "document"


def pack(tree: Tree) -> dict[str, Array]:
    """A tree of dicts, lists, tuples, arrays and plain values as arrays by name.

    >>> sorted(pack({"a": {"b": np.ones(2)}, "c": (0.1, None)}))
    ['a/b', 'document']
    """
    arrays: dict[str, Array] = {}
    text = json.dumps(_plain(tree, "", arrays))
    return {**arrays, _DOCUMENT: np.frombuffer(text.encode(), np.uint8)}


def unpack(arrays: Mapping[str, Array]) -> Tree:
    """The tree that was packed.

    >>> unpack(pack({"a": {"b": np.ones(2)}, "c": (0.1, None)}))
    {'a': {'b': array([1., 1.])}, 'c': (0.1, None)}

    Raises
    ------
    CheckpointError
        The arrays were not made by `pack`.
    """
    try:
        tree = json.loads(arrays[_DOCUMENT].tobytes())
        if not isinstance(tree, dict):
            raise TypeError(f"the document is a {type(tree).__name__}")
        return {key: _rich(value, arrays) for key, value in tree.items()}
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            explain("resume", "state.safetensors", "the state of a training", f"{error!r}")
        ) from None


def _plain(value: Any, path: str, arrays: dict[str, Array]) -> Any:
    """A value as JSON knows it; an array moves to `arrays`."""
    if isinstance(value, np.ndarray):
        arrays[path] = value
        return {_ARRAY: path}
    if isinstance(value, Mapping):
        prefix = f"{path}/" if path else ""
        return {key: _plain(item, f"{prefix}{key}", arrays) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_plain(item, f"{path}/{i}", arrays) for i, item in enumerate(value)]
        return {_TUPLE: items} if isinstance(value, tuple) else items
    return value.item() if isinstance(value, np.generic) else value


def _rich(value: Any, arrays: Mapping[str, Array]) -> Any:
    """What `_plain` was made from."""
    if isinstance(value, list):
        return [_rich(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {_ARRAY}:
        return arrays[value[_ARRAY]]
    if set(value) == {_TUPLE}:
        return tuple(_rich(item, arrays) for item in value[_TUPLE])
    return {key: _rich(item, arrays) for key, item in value.items()}
