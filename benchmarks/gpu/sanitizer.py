"""compute-sanitizer: which tool to ask, and its verdict read from the text it prints.

    ========= Invalid __global__ read of size 4 bytes            memcheck
    =========     at saxpy(float, const float *)+0x90 in saxpy.cu:7
    =========     by thread (232,0,0) in block (3,0,0)
    =========     Address 0x7f..fa0 is out of bounds
    ========= Error: Race reported between Write access at k(float *)+0xb0 in k.cu:28   racecheck
    =========     and Read access at k(float *)+0xc0 in k.cu:30 [1024 hazards]
    ========= Uninitialized __global__ memory read of size 4 bytes                      initcheck
    ========= Barrier error detected. Divergent thread(s) in block.                     synccheck
    ========= ERROR SUMMARY: 1 error

Source: the samples in https://docs.nvidia.com/compute-sanitizer/ComputeSanitizer/index.html.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")

_PREFIX = re.compile(r"^=========\s?", re.MULTILINE)
_HEADLINES = (  # the first line of an error; the kind in our words
    (re.compile(r"Invalid __\w+__ (?:read|write|atomic|access) of size \d+"), "out-of-bounds"),
    (re.compile(r"Race reported between \w+ access"), "race"),
    (re.compile(r"Uninitialized __\w+__ memory (?:read|access)"), "uninitialized"),
    (re.compile(r"Barrier error detected\. Divergent thread\(s\) in block"), "barrier-divergence"),
    (re.compile(r"Barrier error detected\. (?:Divergent|Invalid|Missing)"), "warp-sync"),
)
_LINE = re.compile(r" in \S*?\.cu:(\d+)")
_SUMMARY = re.compile(r"(?:ERROR SUMMARY: (\d+) errors?|RACECHECK SUMMARY: (\d+) hazards?)")


@dataclass(frozen=True)
class Verdict:
    """What one tool said of one run.

    Attributes
    ----------
    errors : int or None
        From the summary; None if there is none, as when the run was stopped.
    findings : tuple of (kind, line)
        Without repetitions; the line is None where the text names none.
    """

    errors: int | None
    findings: tuple[tuple[str, int | None], ...]

    @property
    def kinds(self) -> list[str]:
        return sorted({kind for kind, _ in self.findings})


def parse(text: str) -> Verdict:
    """Read the output of compute-sanitizer, with whatever the program printed between its lines.

    >>> parse("========= COMPUTE-SANITIZER\\n========= ERROR SUMMARY: 0 errors\\n").errors
    0
    """
    lines = [_PREFIX.sub("", line) for line in text.splitlines() if line.startswith("=========")]
    findings: list[tuple[str, int | None]] = []
    for at, line in enumerate(lines):
        kind = next((kind for pattern, kind in _HEADLINES if pattern.search(line)), None)
        if kind is None:
            continue
        body = _body(lines, at)
        if kind == "out-of-bounds" and any("misaligned" in part for part in body):
            kind = "misaligned"
        place = next((found for part in body if (found := _LINE.search(part))), None)
        found = (kind, int(place[1]) if place else None)
        if found not in findings:
            findings.append(found)
    summaries = [_SUMMARY.search(line) for line in lines]
    counts = [int(found[1] or found[2]) for found in summaries if found]
    return Verdict(counts[-1] if counts else None, tuple(findings))


def _body(lines: list[str], at: int) -> list[str]:
    """The headline and the indented lines under it."""
    end = at + 1
    while end < len(lines) and lines[end].startswith(" "):
        end += 1
    return lines[at:end]
