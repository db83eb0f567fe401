"""Recipe: a known system that can be trained by name, and the registry of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinygraph.errors import CheckpointError
from tinygraph.recipes.settings import require_settings
from tinygraph.training import Progress, RunFolder


@dataclass(frozen=True)
class Recipe:
    """What a module of this room offers to the command line.

    Attributes
    ----------
    name, summary : str
        The name on the command line, and one line about it.
    config : type
        A dataclass of settings with their defaults; each can be made from plain JSON values.
    train : function of (config, run, data_dir, download, progress)
        Train, or go on where a run that was opened stopped; leave everything in the run folder, and
        return the metrics on the test data.
    rehearse : function of (config, data_dir, download)
        Try one batch, write nothing, and return what `Trainer.rehearse` found, with a `summary`.
    training_step : function of (config, data_dir, download)
        Get everything ready and return a function without arguments, which learns from one batch
        each time that it is called, and writes nothing: what `tinygraph profile` looks at.
    evaluate : function of (run, data_dir, best, device)
        Load the last or the best parameters of a run onto a device; return the metrics on the test
        data.  Parameters are plain numbers: the device need not be that of the training.
    metric : str
        Which of the metrics is named on the last line of a training.
    draw : function of (run,)
        Draw the pictures of a run, and yield the path of each when it is written.
    resumable : bool
        Whether a run that was stopped can go on.  A recipe that trains in a moment saves no
        checkpoints.
    data_files : bool
        Whether it reads data, from a folder or a library; others make their own.
    """

    name: str
    summary: str
    config: type[Any]
    train: Callable[[Any, RunFolder, str | Path | None, bool, Progress | None], dict[str, float]]
    rehearse: Callable[[Any, str | Path | None, bool], dict[str, Any]]
    training_step: Callable[[Any, str | Path | None, bool], Callable[[], Any]]
    evaluate: Callable[[RunFolder, str | Path | None, bool, str], dict[str, float]]
    metric: str
    draw: Callable[[RunFolder], Iterator[Path]]
    resumable: bool = True
    data_files: bool = True

    def settings(self, given: dict[str, Any]) -> Any:
        """The config with some settings given; ArgumentError for one that this recipe lacks."""
        require_settings(self.name, self.config, given)
        return self.config(**given)

    def settings_of(self, run: RunFolder) -> Any:
        """The config that a run was trained with."""
        saved = run.config.get("settings")
        try:
            return self.settings(dict(saved or {}))
        except (TypeError, ValueError) as error:
            raise CheckpointError(
                "run folder", str(run.path / "config.json"), f"the settings of {self.name}", error
            ) from None
