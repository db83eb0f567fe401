"""The Markdown files of an exercise that a teacher edits: steps and hints, mistakes, answers.

# What goes wrong in exercise 8          words for people, up to the first section

## Step 1: window-lost                   a section of each

One window is missing: ...               its words

```diff                                  its blocks
-return (size - kernel) // stride + 1
+return (size - kernel) // stride
```
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tinygraph.base.errors import ArgumentError
from tinygraph.base.frozen import frozen
from tinygraph.base.text_file import read_text
from tinygraph_course.content import marks
from tinygraph_course.content.edits import Hunk, edited, read_hunks

OR = "or"  # what stands between two blocks of one section
_STEP = re.compile(r"Step (\d+): (.+)")
_ANSWER = re.compile(r"Step (\d+), ([a-z0-9-]+): (.+)")
_HINT = re.compile(r"(\d+)\. (.+)")


class Block(NamedTuple):
    """What stands between ``` and ```."""

    language: str
    lines: list[str]
    place: str


class Section(NamedTuple):
    """What stands below a heading; `place` is for errors."""

    heading: str
    words: list[str]
    blocks: list[Block]
    place: str

    def refuse(self, expected: str, got: str) -> ArgumentError:
        """The error that says what is expected here."""
        return ArgumentError("course", self.place, expected, got, "docs/course/writing.md shows it")

    def title(self, pattern: re.Pattern[str], expected: str) -> re.Match[str]:
        """The heading in its parts."""
        found = pattern.fullmatch(self.heading)
        if found is None:
            raise self.refuse(expected, self.heading)
        return found


def sections(path: Path) -> Iterator[Section]:
    """The sections of a file.

    Raises
    ------
    ArgumentError
        A block without an end.
    """
    section: Section | None = None
    block: Block | None = None
    for number, line in enumerate(read_text(path).splitlines(), 1):
        place = f"{path}, line {number}"
        if block is not None:
            if line.rstrip() == "```":
                block = None
            else:
                block.lines.append(line)
        elif line.startswith("## "):
            if section is not None:
                yield section
            section = Section(line[3:].strip(), [], [], place)
        elif section is not None and line.startswith("```"):
            block = Block(line[3:].strip(), [], place)
            section.blocks.append(block)
        elif section is not None and line.strip():
            if section.blocks and line.strip() != OR:
                raise section.refuse(f"a block, {OR!r} or a heading behind a block", line)
            section.words.extend([] if section.blocks else [line.rstrip()])
    if block is not None:
        raise ArgumentError("course", block.place, "a block that ends with ```", "the file's end")
    if section is not None:
        yield section


@frozen
class Mistake:
    """A known mistake in one step.

    Attributes
    ----------
    step : int
    name : str
    says : str
        What the learner reads, at most three lines; it describes what his code does.
    ways : sequence of sequences of Hunk
        Edits of the solution that make it.  Further ones are wrong in the same way, and do
        something else all the same.
    """

    step: int
    name: str
    says: str
    ways: list[list[Hunk]]


def mistakes(path: Path) -> list[Mistake]:
    """What goes wrong, in the order of the file: of two that behave alike the first is named.

    Raises
    ------
    ArgumentError
        A section is none of a mistake; it is named by its line.
    """
    found = []
    for section in sections(path):
        title = section.title(_STEP, "## Step 1: name-of-the-mistake")
        if not section.words or not section.blocks:
            raise section.refuse("words for the learner, and a block ```diff", section.heading)
        ways = [read_hunks(block.lines, block.place) for block in section.blocks]
        found.append(Mistake(int(title[1]), title[2], "\n".join(section.words), ways))
    return found


class Titled(NamedTuple):
    """What a learner reads of a step before he tries it."""

    number: int
    title: str
    hints: tuple[str, ...]


def titles(path: Path) -> list[Titled]:
    """Title and hints of each step.

    Raises
    ------
    ArgumentError
        A section is none of a step; it is named by its line.
    """
    found = []
    for section in sections(path):
        title = section.title(_STEP, "## Step 1: its title")
        hints: list[str] = []
        for line in section.words:
            hint = _HINT.fullmatch(line)
            if hint and int(hint[1]) == len(hints) + 1:
                hints.append(hint[2])
            elif hints and line.startswith("   "):
                hints[-1] += f" {line.strip()}"
            else:
                raise section.refuse("hints `1. ...`, `2. ...`, and lines that go on", line)
        found.append(Titled(int(title[1]), title[2], tuple(hints)))
    return found


@frozen
class Answer:
    """What somebody might write in a step.

    Attributes
    ----------
    step : int
    verdict : str
        "right"; the name of the mistake that it is; "unknown", wrong in a way that the catalogue
        does not have, which may look like one that it has; or "unnamed", which looks like none.
    name : str
    text : str
        The solution with it.
    """

    step: int
    verdict: str
    name: str
    text: str


def answers(path: Path, marked: str) -> list[Answer]:
    """The answers of a file, each put into the solution with its marks.

    A block of code is the body of the gap; a block ```diff edits the solution, or the answer that a
    line `From: its name` says.

    Raises
    ------
    ArgumentError
        A section is none of an answer; it is named by its line.
    """
    found: list[Answer] = []
    for section in sections(path):
        title = section.title(_ANSWER, "## Step 1, right: its name")
        if len(section.blocks) != 1 or len(section.words) > 1:
            raise section.refuse("one block, and one line `From: ...` at most", section.heading)
        block = section.blocks[0]
        step, base = int(title[1]), marks.bare(marked)
        if block.language != "diff":
            text = marks.with_body(marked, step, block.lines)
        else:
            for line in section.words:
                name = line.removeprefix("From: ")
                known = [answer.text for answer in found if answer.name == name]
                if len(known) != 1:
                    raise section.refuse("From: the name of one answer above", line)
                base = known[0]
            text = edited(base, read_hunks(block.lines, block.place))
        found.append(Answer(step, title[2], title[3], text))
    return found
