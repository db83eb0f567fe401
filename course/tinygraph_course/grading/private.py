"""Private packs: other cases of the same steps, drawn with a seed that only the teacher has.

A pack is a seed, not a list of cases: what is drawn is what each step says may be drawn (`drawn`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tinygraph.base.errors import ArgumentError
from tinygraph.base.frozen import frozen
from tinygraph.base.paths import typed
from tinygraph.base.text_file import read_text
from tinygraph_course.content.exercise import Exercise

CASES = 24  # of a function; a fourth of it launches of a kernel
_TEXT = """\
# A private pack of tinygraph's course. Whoever has the seed can draw the same cases.
seed = {seed}
cases = {cases}
"""


@frozen
class Pack:
    """Cases that learners do not have.

    Attributes
    ----------
    seed : int
    cases : int
        So many for each step.
    content : bytes
        The pack as it is written.

    Examples
    --------
    >>> pack = Pack.read("seed = 7")
    >>> pack.seed, pack.cases
    (7, 24)
    """

    seed: int
    cases: int
    content: bytes

    @classmethod
    def made(cls, seed: int, cases: int = CASES) -> Pack:
        """A pack of a seed."""
        return cls.read(_TEXT.format(seed=seed, cases=cases))

    @classmethod
    def read(cls, text: str) -> Pack:
        """A pack from its text.

        Raises
        ------
        ArgumentError
            It is no pack.
        """
        expected = "lines such as seed = 7 and cases = 24"
        way_out = "tinygraph course private SEED OUT makes one"
        try:
            found: dict[str, Any] = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # also an int of 5000 digits
            raise ArgumentError("course", "private pack", expected, error, way_out) from None
        if unknown := sorted(set(found) - {"seed", "cases"}):
            raise ArgumentError("course", "private pack", expected, unknown[0], way_out)
        numbers = [found.get("seed"), found.get("cases", CASES)]
        for number, low in zip(numbers, (0, 1), strict=True):
            if type(number) is not int or not low <= number < 2**63:
                raise ArgumentError("course", "private pack", expected, f"{number!r}", way_out)
        return cls(numbers[0], numbers[1], text.encode())

    @classmethod
    def load(cls, path: Path) -> Pack:
        """A pack from its file.

        Raises
        ------
        ArgumentError
            There is none.
        """
        try:
            text = read_text(path)
        except (OSError, ValueError) as error:
            way_out = f"tinygraph course private SEED {typed(path)} makes one"
            raise ArgumentError("course", "private pack", f"{path}", error, way_out) from None
        return cls.read(text)

    def of(self, exercise: Exercise) -> Sequence[Any]:
        """The steps of an exercise with cases of this pack; those that have none are left out.

        Each exercise and step draws from a seed of its own.
        """
        steps = [
            step.private(self.seed + 1000 * exercise.number + step.number, self.cases)
            for step in exercise.steps
        ]
        return [step for step in steps if step is not None]
