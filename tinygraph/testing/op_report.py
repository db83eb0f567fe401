"""What check_op found: one line a stage, and the smallest example of the first that failed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from tinygraph.base import TinygraphError


class CheckOpError(TinygraphError, AssertionError):
    """An op that does not keep its contract.  `report` holds the OpReport."""

    def __init__(self, message: str, report: OpReport) -> None:
        super().__init__(message)
        self.report = report


@dataclass(frozen=True)
class Stage:
    """One demand of the contract.

    Attributes
    ----------
    name : str
        What is demanded, as in "gradient equals finite differences".
    verdict : {"pass", "fail", "inconclusive", "skipped"}
        "inconclusive": no example said anything, since all lie on kinks.
    examples : int
        How many were tried, those tried while looking for a smaller failure included.
    message : str
        What went wrong, or why it was skipped.
    example : str
        The smallest example that failed.
    """

    name: str
    verdict: str
    examples: int = 0
    message: str = ""
    example: str = ""


@dataclass(frozen=True)
class OpReport:
    """The stages of `check_op`, in order; the last one is the first that failed, if one did."""

    op: str
    stages: tuple[Stage, ...]

    @property
    def failure(self) -> Stage | None:
        """The first stage that failed."""
        return next((s for s in self.stages if s.verdict == "fail"), None)

    @property
    def ok(self) -> bool:
        """Whether no stage failed and none was inconclusive; skipped ones are told by `text`."""
        return all(s.verdict in ("pass", "skipped") for s in self.stages)

    def text(self) -> str:
        """The report as lines for a terminal."""
        lines = [f"check_op: {self.op}"]
        for stage in self.stages:
            counted = f" ({stage.examples} examples)" if stage.examples else ""
            reason = f": {stage.message}" if stage.verdict in ("skipped", "inconclusive") else ""
            lines.append(f"  {stage.verdict:12} {stage.name}{counted}{reason}")
        failed = self.failure
        if failed is not None:
            lines += ["", *failed.message.strip().splitlines()]
            if failed.example:
                lines += ["", "the smallest example:", *failed.example.splitlines()]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The report as numbers and strings, for JSON."""
        return {"op": self.op, "ok": self.ok, "stages": [asdict(s) for s in self.stages]}
