"""The tuning of a compiled training in its run folder, so that a resumed one has the same bits."""

from __future__ import annotations

from tinygraph.plan.tuning import Tuning
from tinygraph.training.run import RunFolder


class KeptTuning:
    """Reads the choices of a run that was opened, and writes each new one before it is learnt from.

    Parameters
    ----------
    tuning : Tuning
        Of the compiled step.
    run : RunFolder, optional

    Raises
    ------
    CheckpointError
        The file in the run folder is damaged.
    """

    def __init__(self, tuning: Tuning, run: RunFolder | None) -> None:
        self.tuning, self.run = tuning, run
        if run is not None and run.opened:
            tuning.load(run.tuning())
        self._written = len(tuning.choices)

    def write(self) -> None:
        """Write tuning.json where there are choices that it lacks."""
        if self.run is not None and len(self.tuning.choices) > self._written:
            self.run.write_tuning(self.tuning.to_list())
            self._written = len(self.tuning.choices)
