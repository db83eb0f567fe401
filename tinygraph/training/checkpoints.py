"""Checkpoints: everything that a training needs to go on with the same bits, the last two kept.

    checkpoints/000002-000000170.safetensors     after 2 whole epochs and 170 steps

A checkpoint is one file, replaced in one step and sealed (sealed.py), so that it is whole whenever
the process dies.  It holds what state.py packs, and a label: the number of the format and its own
name.  Where the newest one turns out to be damaged nonetheless, the one before is taken.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping
from itertools import count
from pathlib import Path

import numpy as np

from tinygraph.base import ArgumentError, CheckpointError
from tinygraph.base.disk import real_folder
from tinygraph.engine import Array
from tinygraph.files.sealed import load_arrays, reason, save_arrays, writing

FORMAT = 3  # another number is refused
KEPT = 2
_LABEL = "checkpoint"  # the array that says what the file is
_NAME = re.compile(r"\d{6,}-\d{9,}")
_LEFT = re.compile(rf"\.{_NAME.pattern}\.safetensors\.\d+-[0-9a-f]+\.tmp")
_FORMAT = re.compile(rb"^format \d+, ")


class CheckpointWarning(UserWarning):
    """A damaged checkpoint was passed over."""


class _NotDamaged(CheckpointError):
    """A checkpoint that cannot be taken, and keeps its name: its content may be good."""


class Checkpoints:
    """The checkpoints of one run, in a folder that is made with the first one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def names(self) -> list[str]:
        """The names of the checkpoints, oldest first."""
        found = [path.stem for path in self.folder.glob("*.safetensors")]
        return sorted([name for name in found if _NAME.fullmatch(name)])

    def save(self, epoch: int, step: int, state: Mapping[str, Array]) -> Path:
        """Write a checkpoint, and remove all but the last two; where it cannot be written, those
        before it are untouched.

        `epoch` and `step` count what is done; a training is only once at each pair of them.
        """
        name = _name(epoch, step)
        place = self._file(name)
        if not place.exists():  # what has such a name is whole
            with writing(place):
                real_folder(self.folder)
            save_arrays(place, {**state, _LABEL: np.frombuffer(_label(name), np.uint8)})
            # What a process that was killed has left is ours by its name.
            left = [path for path in self.folder.glob(".*.tmp") if _LEFT.fullmatch(path.name)]
            for old in [*map(self._file, self.names()[:-KEPT]), *left]:
                old.unlink(missing_ok=True)
        return place

    def newest(self) -> dict[str, Array] | None:
        """The state in the newest checkpoint that is whole; None where there was none yet.

        Damaged ones are renamed, with a CheckpointWarning that names the reason.  Where all are
        damaged, that is a CheckpointError; so is one that cannot be read just now, or that another
        version of tinygraph wrote.
        """
        damaged: dict[str, str] = {}
        for name in reversed(self.names()):
            try:
                state = self._load(name)
            except _NotDamaged:
                raise
            except CheckpointError as error:
                damaged[name] = str(error)
                continue
            for later, bad in damaged.items():
                text = f"a damaged checkpoint is passed over, {name} is taken: {bad}"
                warnings.warn(text, CheckpointWarning, stacklevel=2)
                with writing(self._file(later)):
                    self._file(later).rename(self._free(f"{later}.damaged"))
            return state
        if damaged:
            raise CheckpointError(
                "resume",
                str(self.folder),
                "a whole checkpoint",
                f"{len(damaged)}, all damaged; the newest: {next(iter(damaged.values()))}",
                "train again, or take a backup of the parameters",
            )
        return None

    def require_not_ahead(self, epoch: int, steps: int) -> None:
        """ArgumentError where a checkpoint is newer than a training that would go on from here."""
        done, batches = max((tuple(map(int, n.split("-"))) for n in self.names()), default=(0, 0))
        if (done, batches) > (epoch, steps):
            raise ArgumentError(
                "fit",
                "run",
                f"a training that goes on from the newest checkpoint of {self.folder}, after "
                f"{done} whole epochs and {batches} batches",
                f"one after {epoch} and {steps}, which would take its place",
                "trainer.resume() before fit; or a new folder, RunFolder(...), to begin anew",
            )

    def _load(self, name: str) -> dict[str, Array]:
        """What a file holds that is whole and has its own name; CheckpointError otherwise."""
        path = self._file(name)
        try:
            state = load_arrays(path)
        except (CheckpointError, MemoryError) as error:
            why = error.__cause__ if isinstance(error, CheckpointError) else error
            if not isinstance(why, (OSError, MemoryError)):
                raise
            got = reason(why) if isinstance(why, OSError) else "not enough memory"
            way_out = "try again, nothing was changed; or move it away to take the one before it"
            raise _NotDamaged("resume", str(path), "a file to read", got, way_out) from None
        label = state.pop(_LABEL, np.zeros(0)).tobytes()
        if label != _label(name):
            of_another_format = _FORMAT.sub(b"", label) == _FORMAT.sub(b"", _label(name))
            raise (_NotDamaged if of_another_format else CheckpointError)(
                "resume",
                str(path),
                f"a checkpoint of format {FORMAT} that was saved under that name",
                repr(label[:60]),
                "give it its name again, or use the version of tinygraph that wrote it",
            )
        return state

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.safetensors"

    def _free(self, name: str) -> Path:
        """That name, with a counter behind it where it is taken: nothing is replaced."""
        places = (self.folder / (f"{name}-{n}" if n > 1 else name) for n in count(1))
        return next(place for place in places if not os.path.lexists(place))


def _name(epoch: int, steps: int) -> str:
    return f"{epoch:06d}-{steps:09d}"


def _label(name: str) -> bytes:
    return f"format {FORMAT}, {name}".encode()
