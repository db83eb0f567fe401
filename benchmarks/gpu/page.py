"""The page of results: what sections hand in, and how it becomes Markdown.

A later run with `--only` replaces its sections in the page of the same GPU and day; the list of
what lost is made anew from all sections on the page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.report import Plot

REHEARSAL = "REHEARSAL, NOT MEASURED"
LOST = "- lost: "

_SECTION = re.compile(
    r"<!-- section (?P<name>\w+) -->\n(?P<text>.*?)<!-- end (?P=name) -->\n", re.DOTALL
)


@dataclass
class Result:
    """What one section found.

    Attributes
    ----------
    blocks : list of str
        Paragraphs and tables, in Markdown.
    lost : list of str
        One line for each comparison that fell short of its aim.
    left_out : list of str
        What this machine did not allow, and why.
    failed : str
        Why the section counts as failed although it ended; "" if it does not.
    """

    title: str
    blocks: list[str] = field(default_factory=list)
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
    parts = [heading, *result.blocks]
    parts += [f"![{p.title}]({pictures[p.name]})" for p in result.plots if p.name in pictures]
    if result.failed:
        parts.append(f"**Failed:** {result.failed}")
    if result.left_out:
        parts.append("\n".join(f"- left out: {line}" for line in result.left_out))
    if result.lost and not rehearse:
        parts.append("\n".join(LOST + line for line in result.lost))
    return "\n\n".join(parts) + "\n"


def error_text(title: str, error: str, rehearse: bool) -> str:
    """A section that did not end: the error in its place."""
    failure = Result(title, blocks=[f"```text\n{error.rstrip()}\n```"], failed="the section broke")
    return section_text(failure, {}, rehearse)


def read_sections(page: str) -> dict[str, str]:
    """The sections of a page by name, as they stand."""
    return {found["name"]: found["text"] for found in _SECTION.finditer(page)}


def page_text(title: str, about: str, sections: Mapping[str, str], rehearse: bool) -> str:
    """The whole page."""
    head = [f"# {title}"]
    if rehearse:
        head += [
            f"**{REHEARSAL}.** No GPU was used: every figure below is of numpy and of the "
            "emulator, at tiny sizes, and says nothing about speed anywhere."
        ]
    lost = [
        line for text in sections.values() for line in text.splitlines() if line.startswith(LOST)
    ]
    failed = [name for name, text in sections.items() if "\n**Failed:**" in text]
    nothing = "Nothing was measured." if rehearse else "Nothing fell short of its aim."
    what_lost = [line.replace(LOST, "- ") for line in lost] or [nothing]
    parts = [*head, about, "## What lost", "\n".join(what_lost)]
    if failed:
        parts.append(f"Sections that failed: {', '.join(failed)}.")
    body = [
        f"<!-- section {name} -->\n{text}<!-- end {name} -->\n" for name, text in sections.items()
    ]
    return "\n\n".join(parts) + "\n\n" + "\n".join(body)
