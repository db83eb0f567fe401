"""Checkpoints: everything that a training needs to go on with the same bits, the last two kept.

    checkpoints/000002-000000170/              after 2 whole epochs and 170 steps
        parameters.safetensors                 parameters and buffers of the model
        state.safetensors                      the rest of the training's state (state.py)

The two files belong together, so they come together: both are written into a temporary folder and
flushed to the disk, then the folder is renamed.  Whenever the process dies, a folder with
numbers for a name is whole.  Both files are sealed (sealed.py), and the state names the number of
the format, the folder, and the seal of the parameters, so that files of two checkpoints cannot be
mixed.  Where the newest checkpoint turns out to be damaged nonetheless, the one before is taken.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tinygraph.disk import sync_folder
from tinygraph.errors import CheckpointError
from tinygraph.shapes import Array
from tinygraph.training.sealed import load_arrays, save_arrays, seal, writing

FORMAT = 1  # of the two files; another number is refused
KEPT = 2
_LABEL = "checkpoint"  # the array of the state that says what it belongs to
_NAME = re.compile(r"\d{6,}-\d{9,}")


class CheckpointWarning(UserWarning):
    """A damaged checkpoint was passed over."""


class Checkpoint(NamedTuple):
    """One point of a training."""

    name: str
    parameters: dict[str, Array]
    state: dict[str, Array]


class Checkpoints:
    """The checkpoints of one run.

    Parameters
    ----------
    folder : Path
        Made with the first checkpoint.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def names(self) -> list[str]:
        """The names of the checkpoints, oldest first."""
        if not self.folder.is_dir():
            return []
        return sorted(p.name for p in self.folder.iterdir() if _NAME.fullmatch(p.name))

    def save(
        self, epoch: int, step: int, parameters: Mapping[str, Array], state: Mapping[str, Array]
    ) -> Path:
        """Write a checkpoint, and remove all but the last two.

        `epoch` and `step` count what is done; a training is only once at each pair of them.

        Raises
        ------
        CheckpointError
            It could not be written; the checkpoints before it are untouched.
        """
        place = self.folder / f"{epoch:06d}-{step:09d}"
        if place.exists():  # what has such a name is whole
            return place
        temporary = self.folder / f".{place.name}-{os.getpid()}.tmp"
        with writing(place):
            try:
                temporary.mkdir(parents=True)
                saved = save_arrays(temporary / "parameters.safetensors", parameters)
                text = json.dumps(_label(place.name, seal(saved))).encode()
                labelled = {**state, _LABEL: np.frombuffer(text, np.uint8)}
                save_arrays(temporary / "state.safetensors", labelled)
                os.replace(temporary, place)
            except BaseException:
                shutil.rmtree(temporary, ignore_errors=True)
                raise
            sync_folder(self.folder)
            self._tidy()
        return place

    def newest(self) -> Checkpoint | None:
        """The newest checkpoint that is whole; None where there was none yet.

        Damaged ones are renamed, with a CheckpointWarning that names the reason.

        Raises
        ------
        CheckpointError
            There are checkpoints, and all are damaged.
        """
        reasons = []
        for name in reversed(self.names()):
            try:
                found = self._load(name)
            except CheckpointError as error:
                reasons.append(str(error))
                continue
            for why in reasons:
                text = f"a damaged checkpoint is passed over, {name} is taken: {why}"
                warnings.warn(text, CheckpointWarning, stacklevel=2)
            for later in self.names():
                if later > name:
                    (self.folder / later).rename(self.folder / f"{later}.damaged")
            return found
        if reasons:
            raise CheckpointError(
                "resume",
                str(self.folder),
                "a whole checkpoint",
                f"{len(reasons)}, all damaged; the newest: {reasons[0]}",
                "train again, or take a backup of the parameters",
            )
        return None

    def _load(self, name: str) -> Checkpoint:
        """A checkpoint whose files are whole and belong together; CheckpointError otherwise."""
        place = self.folder / name
        parameters = load_arrays(place / "parameters.safetensors")
        state = load_arrays(place / "state.safetensors")
        expected = _label(name, seal(place / "parameters.safetensors"))
        try:
            label = json.loads(state.pop(_LABEL).tobytes())
        except (KeyError, ValueError, RecursionError):
            label = "another file"
        if label != expected:
            raise CheckpointError(
                "resume",
                str(place),
                f"the two files of format {FORMAT}, saved together under that name: {expected}",
                label,
                "put the files of one checkpoint "
                "together, or use the version of tinygraph that wrote them",
            )
        return Checkpoint(name, parameters, state)

    def _tidy(self) -> None:
        """Remove old checkpoints, and what a process that was killed left half done."""
        for name in self.names()[:-KEPT]:
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for left in self.folder.glob(".*.tmp"):
            shutil.rmtree(left, ignore_errors=True)


def _label(name: str, parameters: str) -> dict[str, Any]:
    """What the state of a checkpoint says of itself; `parameters` is their seal."""
    return {"format": FORMAT, "name": name, "parameters": parameters}
