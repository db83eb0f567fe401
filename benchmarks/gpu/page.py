"""The page of results: what sections hand in, and how it becomes Markdown.

A section is put on the page whenever it has found something, so that nothing is lost where it is
stopped.  The marks around it tell how it ended:

    begun       it was put down while it ran: what stands there was measured, the rest was not
    finished    it has all it wanted
    failed      it ended, and something in it was wrong; or it broke

A later run replaces its sections in the page of the same GPU and day; the list of what lost is made
anew from all sections on the page.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.report import Plot, Table

REHEARSAL = "REHEARSAL, NOT MEASURED"
LOST = "- lost: "

BEGUN, FINISHED, FAILED = "begun", "finished", "failed"

_SECTION = re.compile(
    r"<!-- section (?P<name>\w+) (?P<state>\w+) -->\n(?P<text>.*?)<!-- end (?P=name) -->\n",
    re.DOTALL,
)
_WHAT_LOST = "## What lost"


@dataclass
class Result:
    """What one section found.

    Attributes
    ----------
    blocks : list of str or Table
        Paragraphs and tables, in Markdown; a Table may still grow.
    lost : list of str
        One line for each comparison that fell short of its aim.
    left_out : list of str
        What this machine did not allow, and why.
    failed : str
        Why the section counts as failed although it ended; "" if it does not.
    """

    title: str
    blocks: list[str | Table] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    failed: str = ""

    def aim(self, what: str, reached: float, aim: float) -> None:
        """Note a comparison that stays below its aim."""
        if not reached >= aim:  # NaN has lost too
            self.lost.append(f"{what}: {reached:.2f}, the aim is {aim:.2f}")


def section_text(result: Result, pictures: Mapping[str, str], rehearse: bool) -> str:
    """One section as Markdown; `pictures` has the file of each plot that was drawn."""
    heading = f"## {result.title}" + (f" ({REHEARSAL})" if rehearse else "")
    shown = [b for b in result.blocks if not isinstance(b, Table) or b.rows]
    parts = [heading, *map(str, shown)]
    parts += [f"![{p.title}]({pictures[p.name]})" for p in result.plots if p.name in pictures]
    if result.failed:
        parts.append(f"**Failed:** {result.failed}")
    if result.left_out:
        parts.append("\n".join(f"- left out: {line}" for line in result.left_out))
    if result.lost and not rehearse:
        parts.append("\n".join(LOST + line for line in result.lost))
    return "\n\n".join(parts) + "\n"


def error_text(title: str, error: str, rehearse: bool, before: str = "") -> str:
    """A section that broke: the error under what it had found before, or in its place."""
    failure = Result(title, blocks=[f"```text\n{error.rstrip()}\n```"], failed="the section broke")
    text = section_text(failure, {}, rehearse)
    return before + text.partition("\n")[2] if before else text


@dataclass(frozen=True)
class Section:
    """One section of a page, and how it ended: BEGUN, FINISHED or FAILED."""

    text: str
    state: str


def read_sections(page: str) -> dict[str, Section]:
    """The sections of a page by name, as they stand."""
    return {
        found["name"]: Section(found["text"], found["state"]) for found in _SECTION.finditer(page)
    }


class Page:
    """The file of a page; every change leaves a whole one.

    Parameters
    ----------
    path : Path
    order : names of sections
        In which they stand, whenever they came.
    rehearse : bool
    """

    def __init__(self, path: Path, order: Sequence[str], rehearse: bool = False) -> None:
        self.path, self.order, self.rehearse = path, order, rehearse

    @property
    def sections(self) -> dict[str, Section]:
        return read_sections(self._text())

    def begin(self, title: str, about: str, keep: bool) -> None:
        """Write the head; sections of an earlier run stay if they are to be kept."""
        self._write(_head(title, about, self.rehearse), self.sections if keep else {})

    def put(self, name: str, text: str, state: str) -> None:
        """Put a section in its place."""
        head = self._text().partition(_WHAT_LOST)[0].rstrip()
        self._write(head, {**self.sections, name: Section(text, state)})

    def stop(self, name: str, why: str, words: str) -> None:
        """Note that a section did not come to its end: what it had found stays, and is BEGUN."""
        found = self.sections.get(name)
        text = found.text if found and found.state == BEGUN else f"## {name}\n"
        said = f"\n```text\n{words.strip()[-1000:]}\n```\n" if words.strip() else ""
        self.put(name, f"{text}\n**Stopped:** {why}\n{said}", BEGUN)

    def _text(self) -> str:
        return self.path.read_text(encoding="utf-8") if self.path.exists() else ""

    def _write(self, head: str, sections: Mapping[str, Section]) -> None:
        ordered = {name: sections[name] for name in self.order if name in sections}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_name(f".{self.path.name}.part")
        part.write_text(_page_text(head, ordered, self.rehearse), encoding="utf-8")
        os.replace(part, self.path)


def _head(title: str, about: str, rehearse: bool) -> str:
    parts = [f"# {title}"]
    if rehearse:
        parts += [
            f"**{REHEARSAL}.** No GPU was used: every figure below is of numpy and of the "
            "emulator, at tiny sizes, and says nothing about speed anywhere."
        ]
    return "\n\n".join([*parts, about])


def _page_text(head: str, sections: Mapping[str, Section], rehearse: bool) -> str:
    """The whole page."""
    lost = [
        line
        for section in sections.values()
        for line in section.text.splitlines()
        if line.startswith(LOST)
    ]
    nothing = "Nothing was measured." if rehearse else "Nothing fell short of its aim."
    parts = [head, _WHAT_LOST, "\n".join(line.replace(LOST, "- ") for line in lost) or nothing]
    for state, words in ((FAILED, "that failed"), (BEGUN, "that were stopped before their end")):
        names = [name for name, section in sections.items() if section.state == state]
        if names:
            parts.append(f"Sections {words}: {', '.join(names)}.")
    body = [
        f"<!-- section {name} {section.state} -->\n{section.text}<!-- end {name} -->\n"
        for name, section in sections.items()
    ]
    return "\n\n".join(parts) + "\n\n" + "\n".join(body)
