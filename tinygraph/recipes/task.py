"""What recipes hand on: the data, and a training that is ready to begin."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tinygraph.base import AnyPath
from tinygraph.cuda.emulator.compiler import find_compiler
from tinygraph.engine import Device, get_device
from tinygraph.training import Log

Folder: TypeAlias = AnyPath | None  # of data files; None: where they usually are
TRAIN_SHARE = 0.9  # of the training data; the rest is for validation


@dataclass(frozen=True)
class Data:
    """What a recipe works on.

    Attributes
    ----------
    training : dataset
        To learn from.
    held_out : dataset, optional
        Looked at after each epoch: its best parameters are kept.
    test : Any
        What `Recipe.measure` takes, looked at once, at the end.
    facts : dict
        What config.json remembers of the data, as JSON has it, so that the model can be made again
        and other data are refused.
    """

    training: Any
    held_out: Any = None
    test: Any = None
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass
class Task:
    """One training that is ready to begin: settings, data, and the network on its device."""

    config: Any
    data: Any  # a Data
    network: Any
    data_dir: Folder = None
    log: Log | None = None  # what is told how the training goes
    compiled: Any = None  # what runs through a plan, where a recipe compiles without a Trainer


def usable_device(name: str) -> Device:
    """The device of that name; an error now where its first kernel could not be compiled."""
    device = get_device(name)
    if device == "emulator":
        find_compiler()
    return device
