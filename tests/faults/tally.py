"""What an experiment with faults counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """So many faults of a kind, what became of them, and every one that went wrong.

    `outcomes` counts what happened, in words for the table; `failures` holds a line for each fault
    that broke a promise, with what is needed to make it again.
    """

    kind: str
    count: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    notes: str = ""

    def add(self, outcome: str) -> None:
        """A fault that ended as it should."""
        self.count += 1
        self.outcomes[outcome] += 1

    def fail(self, what: str) -> None:
        """A fault that broke a promise."""
        self.count += 1
        self.failures.append(what)
