"""Gaps: the solution of an exercise, the learner's file made of it, and it with a mistake put in.

    # BEGIN SOLUTION 2: a hint of one line         // BEGIN SOLUTION 2: a hint of one line
    ...                                            ...
    # END SOLUTION                                 // END SOLUTION

One gap is the body of one function: two in one function could not be checked apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from textwrap import dedent, indent

from tinygraph.base.errors import ArgumentError
from tinygraph.base.frozen import frozen

_BEGIN = re.compile(r"(?P<indent>\s*)(?P<sign>#|//) BEGIN SOLUTION (?P<step>\d+): (?P<hint>.+)")
_END = re.compile(r"\s*(#|//) END SOLUTION")


@frozen
class Gap:
    """What lies between two marks.

    Attributes
    ----------
    step : int
    hint : str
        What the learner's file says in the place of the lines.
    indent, sign : str
        How its lines begin, and what begins a comment.
    lines : list of str
    """

    step: int
    hint: str
    indent: str
    sign: str
    lines: list[str]

    def todo(self) -> list[str]:
        """What stands in the learner's file."""
        count = sum(bool(line.strip()) for line in self.lines)
        size = "1 line" if count == 1 else f"about {count} lines"
        out = [f"{self.indent}{self.sign} TODO step {self.step} ({size}): {self.hint}"]
        if self.sign == "#":
            out.append(f"{self.indent}raise NotImplementedError('step {self.step}')")
        return out


def parts(solution: str) -> Iterator[str | Gap]:
    """The lines of a solution, with a Gap for each pair of marks.

    Raises
    ------
    ArgumentError
        A mark without the other one.
    """
    gap: Gap | None = None
    for number, line in enumerate(solution.splitlines(), 1):
        begin, end = _BEGIN.fullmatch(line), _END.fullmatch(line)
        if bool(begin) == (gap is not None) and (begin or end):
            raise ArgumentError("course", f"line {number}", "marks in pairs", line.strip())
        if begin:
            gap = Gap(int(begin["step"]), begin["hint"], begin["indent"], begin["sign"], [])
        elif end and gap:
            yield gap
            gap = None
        elif gap:
            gap.lines.append(line)
        else:
            yield line
    if gap:
        raise ArgumentError("course", "the last line", "marks in pairs", "no END SOLUTION")


def stub(solution: str) -> str:
    """The learner's file.

    >>> print(stub('''def double(x):
    ...     # BEGIN SOLUTION 1: twice
    ...     return 2 * x
    ...     # END SOLUTION'''), end="")
    def double(x):
        # TODO step 1 (1 line): twice
        raise NotImplementedError('step 1')
    """
    lines = [part.todo() if isinstance(part, Gap) else [part] for part in parts(solution)]
    return "\n".join(line for several in lines for line in several) + "\n"


def clean(solution: str) -> str:
    """The solution without its marks; lines keep their numbers."""
    lines = [["", *part.lines, ""] if isinstance(part, Gap) else [part] for part in parts(solution)]
    return "\n".join(line for several in lines for line in several) + "\n"


def bare(solution: str) -> str:
    """The solution as it is read: no marks, and nothing in their place."""
    lines = [part.lines if isinstance(part, Gap) else [part] for part in parts(solution)]
    return "\n".join(line for several in lines for line in several) + "\n"


def with_body(solution: str, step: int, body: Sequence[str]) -> str:
    """The solution as it is read, with other lines in the gap of a step, indented as those were.

    Raises
    ------
    ArgumentError
        The step has no gap, or several.
    """
    found = list(parts(solution))
    gaps = sum(isinstance(part, Gap) and part.step == step for part in found)
    if gaps != 1:
        way_out = "a block ```diff edits the solution anywhere"
        raise ArgumentError("course", f"step {step}", "one gap", gaps, way_out)
    plain = dedent("\n".join(body))
    lines = [
        [part]
        if isinstance(part, str)
        else part.lines
        if part.step != step
        else indent(plain, part.indent).splitlines()
        for part in found
    ]
    return "\n".join(line for several in lines for line in several) + "\n"
