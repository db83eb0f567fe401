"""Steps that are kernels: launches on the emulator under the checker, recorded.

A mistake is recognised by its fingerprint: the kinds of findings, the numbers that were written,
and who touched which element between which barriers.  Two kernels are alike by the smallest share,
over all launches, of such accesses that both have (Jaccard, "The distribution of the flora in the
alpine zone", New Phytologist 11, 1912).  Fingerprints of known mistakes are made beforehand
(fingerprints.py), for a launch takes longer than a call in numpy.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from tinygraph.course.compare import difference
from tinygraph.course.exercise import Exercise, Mistake
from tinygraph.course.learner import Learner
from tinygraph.course.picture import picture
from tinygraph.course.steps import NOT_BEGUN, Failure, Raised, Step, answer_of, shown
from tinygraph.frozen import frozen
from tinygraph.shapes import Array

SURE, LIKELY = 0.999, 0.72  # from which likeness on it is that mistake, or looks like it
_ANY_ORDER = ("race", "uninitialized")  # numbers depend on the order of threads then


@frozen
class Launch:
    """One launch of a step.

    Attributes
    ----------
    title : str
        The problem in words: "n = 20, 3 blocks of 8".
    kernel : str
    grid, block : int or tuple of int
    arguments : sequence of arrays and numbers
        None for an array that the kernel only writes.
    expected : mapping from int to array
        For each argument that the kernel writes, what it shall hold.
    defines : mapping
        Macros.
    drawn : str
        The array that is drawn when the launch goes wrong; empty for none.
    sectors : float or None
        How many sectors of 32 bytes a request of a warp may move at most, at any line.
    """

    title: str
    kernel: str
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    arguments: Sequence[Any]
    expected: Mapping[int, Array]
    defines: Mapping[str, int] = field(default_factory=dict)
    drawn: str = ""
    sectors: float | None = None

    def request(self) -> dict[str, Any]:
        """What the learner's process is asked."""
        extents = [[x] if isinstance(x, int) else list(x) for x in (self.grid, self.block)]
        arguments = [
            np.empty_like(self.expected[i]) if x is None else x
            for i, x in enumerate(self.arguments)
        ]
        return {
            "do": "launch",
            "name": self.kernel,
            "defines": dict(self.defines),
            "grid": extents[0],
            "block": extents[1],
            "arguments": arguments,
            "written": sorted(self.expected),
            "unset": [i for i, x in enumerate(self.arguments) if x is None],
            "profile": self.sectors is not None,
            "seconds": 2.0,
        }


@frozen
class KernelStep(Step):
    """A step that is a kernel, or a device function that a kernel of harness.cu calls.

    Attributes
    ----------
    launches : sequence of Launch
        From small to large, with odd sizes among them.
    """

    launches: Sequence[Launch] = ()

    def run(self, exercise: Exercise, learner: Learner) -> Failure | None:
        seen = self.observe(learner)
        for launch, answer in zip(self.launches, seen, strict=True):
            failure = self._failure(launch, answer)
            if failure is None:
                continue
            if f"TODO step {self.number} " in learner.text:
                return Failure(NOT_BEGUN)
            mistake, likeness = self._recognised(exercise, seen)
            return failure.with_mistake(mistake, likeness >= SURE)
        return None

    def observe(self, learner: Learner) -> list[Any]:
        """What each launch did: a dict (see child.launched), or Raised."""
        return [answer_of(reply) for reply in learner.ask(*(x.request() for x in self.launches))]

    def _failure(self, launch: Launch, answer: Any) -> Failure | None:
        """What is wrong with one launch."""
        case = f"{launch.kernel}, {launch.title}"
        if not isinstance(answer, dict):
            raised = answer if isinstance(answer, Raised) else Raised(answer.type)
            return Failure("error", f"{raised.words or raised.kind}", case)
        drawing = picture(answer, launch.drawn) if launch.drawn else ""
        if answer["findings"]:
            found = answer["findings"][0]
            text = str(found["message"]).splitlines()
            return Failure(
                str(found["kind"]), " ".join(text[:1]), case, line=found["line"], picture=drawing
            )
        for (_, expected), got in zip(sorted(launch.expected.items()), answer["out"], strict=True):
            if difference(got, expected):
                return Failure("values", "", case, shown(expected), shown(got), picture=drawing)
        for line, count in answer["sectors"]:
            if launch.sectors is not None and count > launch.sectors:
                most = f"{launch.sectors:g} at most"
                moved = f"a warp moves {count:.3g} sectors of 32 bytes at once, {most}"
                return Failure("sectors", moved, case, line=line)
        return None

    def _recognised(self, exercise: Exercise, seen: Sequence[Any]) -> tuple[Mistake | None, float]:
        mine = fingerprint(seen)
        known = [
            (likeness(mine, exercise.fingerprints[mistake.name]), mistake)
            for mistake in exercise.of_step(self.number)
            if mistake.name in exercise.fingerprints
        ]
        score, mistake = max(known, key=lambda pair: pair[0], default=(0.0, None))
        return (mistake, score) if score >= LIKELY else (None, score)


def fingerprint(seen: Sequence[Any]) -> list[Any]:
    """What tells one kernel from another, launch by launch, as JSON takes it."""
    marks: list[Any] = []
    for answer in seen:
        if not isinstance(answer, dict):
            marks.append(["error"])
            continue
        kinds = sorted({f"{f['kind']} {f['array'] or ''}".strip() for f in answer["findings"]})
        numbers = [float(f"{x:.4g}") for out in answer["out"] for x in out.ravel()[:64].tolist()]
        names = answer["arrays"]
        touched = {
            zlib.crc32(f"{names[a]} {element} {epoch} {thread} {write}".encode())
            for a, element, epoch, thread, write, _ in answer["touched"].tolist()
        }
        sectors = [round(count, 2) for _, count in answer["sectors"]]
        marks.append([kinds, [*numbers, *sectors], sorted(touched)])
    return marks


def likeness(mine: Sequence[Any], known: Sequence[Any]) -> float:
    """1 where two kernels do the same, 0 where they go wrong in another way."""
    score = 1.0
    for one, other in zip(mine, known, strict=True):
        if len(one) == 1 or len(other) == 1:
            if one != other:
                return 0.0
            continue
        if one[0] != other[0]:
            return 0.0
        in_order = not any(kind.split()[0] in _ANY_ORDER for kind in one[0])
        if in_order and not np.array_equal(one[1], other[1], equal_nan=True):
            return 0.0
        a, b = set(one[2]), set(other[2])
        score = min(score, len(a & b) / len(a | b) if a | b else 1.0)
    return score
