"""What gradcheck found, as an object, as text on one screen, and as JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Mismatch(NamedTuple):
    """One element of one input, with both derivatives."""

    input: int  # position of the input
    element: tuple[int, ...]
    analytic: float
    numeric: float
    error: float  # as a multiple of what is tolerated: above 1 is a failure


@dataclass(frozen=True)
class Report:
    """What gradcheck found.

    Attributes
    ----------
    verdict : {"pass", "fail", "inconclusive"}
        Inconclusive where more than half of the elements sit on a kink, or none was compared.
    worst : Mismatch or None
        The element that differs most, whether or not that is tolerated; None where a failure was
        found without comparing elements (a gradient of the wrong shape, a changed input).
    diagnosis : str
        What went wrong, in a sentence; empty for a pass.
    checked, kinks : int
        Elements that were compared, and those left out because they sit on a kink.
    stage : str
        Which check failed: "shapes", "dtype", "properties" or "gradient"; empty for a pass.
    function : str
        The name of what was checked.
    shapes : tuple of tuple of int
        The shapes of the inputs.

    Examples
    --------
    >>> import tinygraph as tg
    >>> report = tg.testing.gradcheck(tg.relu, [[1.0, -2.0, 3.0]])
    >>> report.ok, report.checked
    (True, 3)
    >>> report.to_dict()["verdict"]
    'pass'
    """

    verdict: str
    worst: Mismatch | None = None
    diagnosis: str = ""
    checked: int = 0
    kinks: int = 0
    stage: str = ""
    function: str = ""
    shapes: tuple[tuple[int, ...], ...] = field(default=())

    @property
    def ok(self) -> bool:
        return self.verdict == "pass"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; numbers that are not finite become text."""
        plain = {"ok": self.ok, **vars(self), "shapes": [list(shape) for shape in self.shapes]}
        if self.worst is not None:
            worst = self.worst._asdict() | {"element": list(self.worst.element)}
            plain["worst"] = {name: _plain(value) for name, value in worst.items()}
        return plain

    def __str__(self) -> str:
        lines = [f"gradcheck of {self.function or 'the function'}: {self.verdict}"]
        if self.diagnosis:
            lines.append(f"  {self.diagnosis}")
        if self.worst is not None and not self.ok:
            at = self.worst
            shape = f" of shape {self.shapes[at.input]}" if self.shapes else ""
            lines += [
                f"  worst element: {at.element} of input {at.input}{shape}",
                f"    analytic  {at.analytic: .10g}    from backward",
                f"    numeric   {at.numeric: .10g}    from differences of the forward in float64",
            ]
        lines.append(f"  {self.checked} elements compared, {self.kinks} left out at kinks")
        return "\n".join(lines)


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
