"""Steps that are kernels: launches on the emulator under the checker, recorded.

A mistake is recognised by its fingerprint (likeness.py).  Those of known mistakes are made
beforehand (fingerprints.py), for a launch takes longer than a call in numpy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tinygraph.base.errors import KernelCompileError
from tinygraph.base.frozen import frozen
from tinygraph.engine.spec import Array
from tinygraph.testing.drawing import drawn
from tinygraph_course.checking.compare import difference
from tinygraph_course.checking.goals import RECORDED, missed
from tinygraph_course.checking.learner import Learner
from tinygraph_course.checking.likeness import LIKELY, SURE, fingerprint, is_endless, likeness
from tinygraph_course.checking.picture import picture
from tinygraph_course.checking.steps import (
    NOT_BEGUN,
    NOT_COMPILED,
    Failure,
    Raised,
    Step,
    answer_of,
    shown,
)
from tinygraph_course.content.exercise import Exercise, Mistake

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

_LINE = re.compile(r"^line (?P<line>\d+) *", re.MULTILINE)  # of a picture
_FIRST_ERROR = re.compile(r"^[^\s:]+:(?P<line>\d+):(?:\d+:)? error: (?P<text>.+)$", re.MULTILINE)


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
    most : mapping
        What it may cost, such as {"bytes": 4096}: see goals.py.  A launch whose costs are counted
        is not recorded.
    within : float, optional
        By what share of the largest number floats may differ; without it by what their dtype
        rounds.
    """

    title: str
    kernel: str
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    arguments: Sequence[Any]
    expected: Mapping[int, Array]
    defines: Mapping[str, int] = field(default_factory=dict)
    drawn: str = ""
    most: Mapping[str, float] = field(default_factory=dict)
    within: float | None = None

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
            "counted": bool(set(self.most) - RECORDED),
            "seconds": 2.0,
        }


@frozen
class KernelStep(Step):
    """A step that is a kernel, or a device function that a kernel of harness.cu calls.

    Attributes
    ----------
    launches : sequence of Launch
        From small to large, with odd sizes among them.
    drawn : callable, optional
        Gives a hypothesis strategy of launches, for private checks.
    """

    launches: Sequence[Launch] = ()
    drawn: Callable[[], SearchStrategy[Launch]] | None = None

    def run(self, exercise: Exercise, learner: Learner) -> Failure | None:
        seen = self.observe(learner)
        for launch, answer in zip(self.launches, seen, strict=True):
            failure = self._failure(launch, answer)
            if failure is None:
                continue
            if failure.kind == NOT_COMPILED:
                return _in_file(failure, learner.text.removesuffix(exercise.harness))
            if f"TODO step {self.number} " in learner.text:
                return Failure(NOT_BEGUN)
            if launch.drawn and failure.block and failure.request:
                failure = self._failure(launch, _where_it_is(learner, launch, answer)) or failure
            failure = _in_file(failure, learner.text.removesuffix(exercise.harness))
            mistake, likeness = self._recognised(exercise, seen)
            return failure.with_mistake(mistake, likeness >= SURE)
        return None

    def private(self, seed: int, count: int) -> KernelStep | None:
        """A quarter as many drawn launches, for each takes longer than a call."""
        if self.drawn is None:
            return None
        return replace(self, launches=drawn(self.drawn(), max(1, count // 4), seed))

    def observe(self, learner: Learner) -> list[Any]:
        """What each launch did: a dict (see child.launched), or Raised, as after an endless one."""
        seen: list[Any] = []
        endless = False
        for launch in self.launches:
            if endless:  # the others would take as long, and nobody needs them
                seen.append(Raised("not launched"))
                continue
            answer = answer_of(learner.ask(launch.request())[0])
            if isinstance(answer, dict):
                endless = any(map(is_endless, answer["findings"]))
                answer["missed"] = missed(launch.most, answer)
            seen.append(answer)
        return seen

    def _failure(self, launch: Launch, answer: Any) -> Failure | None:
        """What is wrong with one launch."""
        case = _named(f"{launch.kernel}, {launch.title}")
        if not isinstance(answer, dict):
            raised = answer if isinstance(answer, Raised) else Raised(answer.type)
            if raised.kind == KernelCompileError.__name__:
                return _not_compiled(raised.words)
            return Failure("error", f"{raised.words or raised.kind}", case)
        whole = Failure("", "", case, request=launch.request())
        if answer["findings"]:
            found = answer["findings"][0]
            text = str(found["message"]).splitlines()
            array = found["array"] if found["array"] in answer["arrays"] else launch.drawn
            return replace(
                whole,
                # to record a loop without an end takes as long as the page may take
                request=None if is_endless(found) else whole.request,
                kind=str(found["kind"]),
                text=_named(" ".join(text[:1])),
                line=found["line"],
                block=_number(found["block"], launch.grid),
                picture=picture(answer, array) if launch.drawn else "",
            )
        for (_, expected), got in zip(sorted(launch.expected.items()), answer["out"], strict=True):
            if difference(got, expected, launch.within):
                drawing = picture(answer, launch.drawn) if launch.drawn else ""
                whole = replace(whole, kind="values", picture=drawing)
                return replace(whole, expected=shown(expected), got=shown(got))
        for goal, words, line in answer["missed"]:
            return replace(whole, kind=goal, text=words, line=line)
        return None

    def fingerprint(self, seen: Sequence[Any]) -> list[Any]:
        """How a kernel behaved, as JSON takes it."""
        return fingerprint(seen, [launch.expected for launch in self.launches])

    def _recognised(self, exercise: Exercise, seen: Sequence[Any]) -> tuple[Mistake | None, float]:
        mine = self.fingerprint(seen)
        known = [
            (max(likeness(mine, way) for way in exercise.fingerprints[mistake.name]), mistake)
            for mistake in exercise.of_step(self.number)
            if mistake.name in exercise.fingerprints
        ]
        score, mistake = max(known, key=lambda pair: pair[0], default=(0.0, None))
        return (mistake, score) if score >= LIKELY else (None, score)


def blocks_of(blocks: int, block: int) -> str:
    """In words: "3 blocks of 8"."""
    return f"{blocks} block{'s' if blocks > 1 else ''} of {block}"


def _named(words: str) -> str:
    """A kernel of harness.cu is called by the step whose function it calls."""
    return re.sub(r"\btg_step_(\d+)\b", r"step \1", words)


def _where_it_is(learner: Learner, launch: Launch, answer: dict[str, Any]) -> dict[str, Any]:
    """The same answer, with what happened in the block of the first mistake."""
    of = answer["findings"][0]["block"]
    again = answer_of(learner.ask({**launch.request(), "do": "record", "of": of})[0])
    return {**answer, **again} if isinstance(again, dict) else answer


def _not_compiled(words: str) -> Failure:
    """The first error of the compiler, and its line."""
    found = _FIRST_ERROR.search(words)
    if found is None:
        return Failure(NOT_COMPILED, words)
    return Failure(NOT_COMPILED, f"it does not compile: {found['text']}", line=int(found["line"]))


def _number(block: Sequence[int] | None, grid: int | tuple[int, ...]) -> int:
    """The number of a block; 0 where nothing says which."""
    x, y, z = block or (0, 0, 0)
    extents = (grid,) if isinstance(grid, int) else grid
    columns, rows, *_ = (*extents, 1, 1)
    return x + columns * (y + rows * z)


def _in_file(failure: Failure, text: str) -> Failure:
    """With the words of the line; without a line that stands in harness.cu, which is "given"."""
    lines = text.splitlines()
    drawing = _LINE.sub(
        lambda row: row[0] if int(row["line"]) <= len(lines) else f"{'given':{len(row[0])}}",
        failure.picture,
    )
    failure = replace(failure, picture=drawing)
    if failure.line is None or failure.line > len(lines):
        return replace(failure, line=None)
    return replace(failure, source=lines[failure.line - 1].strip())
