"""Progress of a training: a line for each epoch, and a bar where somebody watches.

Lines go to stdout, so that they can be kept; the bar goes to stderr, and only on a terminal.
Neither uses colours.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from tinygraph.base.streams import abandon, say, shown_on_terminal
from tinygraph.distributed import leads


class Progress:
    """Show how a training goes.

    Parameters
    ----------
    lines : bool
        Whether to print a line for each epoch.
    bar : bool, optional
        Whether to show a bar with the time left; by default where stderr is a terminal.
    """

    def __init__(self, lines: bool = True, bar: bool | None = None) -> None:
        self.lines = lines
        if bar is None:
            bar = shown_on_terminal(sys.stderr) and os.environ.get("TERM") != "dumb"
        self.wants_bar = bar
        self._bar: Any = None

    def start(self, batches: int | None) -> None:
        """A training of so many batches, over all epochs, begins; None where time ends it."""
        if not self.wants_bar:
            return
        from tqdm import tqdm  # takes a moment to load, and few have a bar

        with suppress(OSError):  # the terminal has gone
            self._bar = tqdm(total=batches, unit="batch", leave=False, dynamic_ncols=True)

    def advance(self) -> None:
        """A batch is done."""
        if self._bar is not None:
            self._lasts(self._bar.update)

    def epoch(self, row: Mapping[str, Any], epochs: int | None) -> None:
        """An epoch is done; `epochs` is the number of the last one, if that is known."""
        if not self.lines:
            return
        line = describe(row, epochs)
        if self._bar is None or not self._lasts(lambda: self._write(line)):
            say(line, sys.stdout)

    def _write(self, line: str) -> None:
        """Write a line above the bar."""
        with self._bar.external_write_mode(sys.stdout):
            say(line, sys.stdout)

    def close(self) -> None:
        """The training is over, or was broken off."""
        if self._bar is not None:
            self._lasts(self._bar.close)
        self._bar = None

    def _lasts(self, act: Callable[[], Any]) -> bool:
        """Do something with the bar; False where its terminal has gone: the training has not."""
        try:
            act()
        except (OSError, ValueError):
            abandon(sys.stderr)
            self._bar = None
            return False
        return True


def shown(progress: Progress | bool | None) -> Progress:
    """What a Trainer shows: what it was given, else lines and a bar; nothing for False.

    Of the ranks of a launch only the first one shows anything by itself.
    """
    if isinstance(progress, Progress):
        return progress
    return Progress() if progress is not False and leads() else Progress(lines=False, bar=False)


def describe(row: Mapping[str, Any], epochs: int | None) -> str:
    """One epoch as a line.

    >>> describe({"epoch": 2, "loss": 0.25, "accuracy": 0.9, "seconds": 1.25}, 10)
    'epoch  2/10  loss 0.2500  accuracy 0.9000  1.25 s'
    """
    words = [
        f"epoch {row['epoch']:{len(str(epochs))}}/{epochs}" if epochs else f"epoch {row['epoch']}"
    ]
    for name, value in row.items():
        if name not in ("epoch", "seconds"):
            words.append(f"{name.replace('_', ' ')} {value:.4f}")
    return "  ".join([*words, f"{row['seconds']:.2f} s"])
