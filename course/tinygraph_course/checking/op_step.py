"""Steps that are ops of the graph: compared with the solution's, then checked by differences.

The op runs in the learner's process.  A proxy in this one asks it, so that gradcheck works as ever;
of a gradient that is wrong the learner reads what gradcheck found.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tinygraph.base.frozen import frozen
from tinygraph.testing import memory
from tinygraph.testing.drawing import drawn
from tinygraph.testing.gradcheck import check_problems
from tinygraph_course.checking.child import held
from tinygraph_course.checking.compare import difference
from tinygraph_course.checking.known import recognised
from tinygraph_course.checking.learner import Learner
from tinygraph_course.checking.own import Stumbled, learners_op
from tinygraph_course.checking.steps import (
    NOT_BEGUN,
    Failure,
    Odd,
    Raised,
    Step,
    answer_of,
    call_of,
    copied,
    hung,
    module,
    said,
    same_error,
    shown,
)
from tinygraph_course.content.exercise import Exercise, Mistake

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

_GRADIENTS = "the gradients"
_WHAT = ("the output", "an input after forward", _GRADIENTS)


@frozen
class OpStep(Step):
    """A step that is an op.

    Attributes
    ----------
    op : str
        The class, in the solution and in the learner's file.
    cases : sequence of (settings, arrays)
    differenced : sequence of int
        Which of them are checked by finite differences too.  One at least should be large: on few
        elements every mistake looks like a factor.
    drawn : callable, optional
        Gives a hypothesis strategy of such cases, for private checks.
    keeps : float, optional
        How many times the bytes that the solution saves for backward an op may save.
    """

    op: str = ""
    cases: Sequence[tuple[tuple[Any, ...], tuple[Any, ...]]] = ()
    differenced: Sequence[int] = (0,)
    drawn: Callable[[], SearchStrategy[tuple[tuple[Any, ...], tuple[Any, ...]]]] | None = None
    keeps: float = float("inf")

    def run(self, exercise: Exercise, learner: Learner) -> Failure | None:
        right = getattr(module(exercise.solution + exercise.harness), self.op)
        found: list[list[Any]] = []
        for case in self.cases:  # the others would take as long as one that hung
            over = bool(found) and hung(found[-1][-1])
            found.append(found[-1] if over else self._ask(learner, case))
        for case, got in zip(self.cases, found, strict=True):
            expected = self._of_class(right, case)
            failure = self._compared(right, case, got, expected)
            if failure is None:
                failure = self._of_gradients(learner, right, case, got, expected)
            if failure is not None:
                begun = failure.kind != NOT_BEGUN
                return (
                    failure.with_mistake(*self._recognised(exercise, found)) if begun else failure
                )
        words, _ = self._gradcheck(learner, right) if self.differenced else ("", None)
        return Failure("gradient", words) if words else self._of_memory(learner, right)

    def private(self, seed: int, count: int) -> OpStep | None:
        """Drawn cases, whose gradients are compared with the solution's: some may lie at a kink."""
        if self.drawn is None:
            return None
        return replace(self, cases=drawn(self.drawn(), count, seed), differenced=())

    def _gradcheck(self, learner: Learner, right: Any, *more: Any) -> tuple[str, int | None]:
        """What gradcheck says of the learner's op, and of which input; no words: all is right."""
        problems = (*more, *(self.cases[i] for i in self.differenced))
        try:
            report = check_problems(
                (learners_op(learner, right, settings), arrays, None)
                for settings, arrays in problems
            )
        except Stumbled as error:  # on numbers that were not asked for before
            return f"gradcheck: {error}", None
        if report.verdict != "fail":
            return "", None
        names = _names(right)
        words = re.sub(r"input (\d)", lambda found: names[int(found[1])], report.diagnosis)
        return f"gradcheck: {words}", report.worst.input if report.worst else None

    def _of_memory(self, learner: Learner, right: Any) -> Failure | None:
        """Whether an op saves more for backward than it may."""
        for settings, arrays in self.cases if self.keeps < float("inf") else ():
            needs = [a.dtype.kind == "f" for a in arrays]
            due = held(right(*settings).forward(memory(*needs), *copied(arrays))[1])
            given = {"name": self.op, "settings": list(settings), "arrays": list(arrays)}
            kept = answer_of(learner.ask({"do": "op", **given, "needs": needs})[0])[3]
            if kept > self.keeps * due:
                text = f"forward saves {kept} bytes of arrays for backward, which needs {due}"
                return Failure("saved", text, self._call(right, (settings, arrays)))
        return None

    def _ask(self, learner: Learner, case: Any) -> list[Any]:
        """Output, arrays and gradients; Raised or Odd in the place of what is none."""
        settings, arrays = case
        needs = [a.dtype.kind == "f" for a in arrays]
        given = {"name": self.op, "settings": list(settings), "arrays": list(arrays)}
        first = answer_of(learner.ask({"do": "op", **given, "needs": needs})[0])
        if isinstance(first, (Raised, Odd)):
            return [first]
        y, after, number, _ = first
        if not isinstance(y, np.ndarray):
            return [Odd(type(y).__name__)]
        request = {"number": number, "grad": upstream(y), "needs": needs}
        return [y, after, answer_of(learner.ask({"do": "backward", **request})[0])]

    def _of_class(self, cls: Any, case: Any) -> list[Any]:
        """The same of an op of our own."""
        settings, arrays = case
        arrays, needs = copied(arrays), tuple(a.dtype.kind == "f" for a in arrays)
        with np.errstate(all="ignore"):
            try:
                op = cls(*settings)
                y, saved = op.forward(memory(*needs), *arrays)
            except Exception as error:
                return [Raised(type(error).__name__)]
            try:
                gradients = list(op.backward(memory(*needs), upstream(y), saved, needs))
            except Exception as error:
                return [y, list(arrays), Raised(type(error).__name__)]
        return [y, list(arrays), gradients]

    def _compared(
        self, right: Any, case: Any, got: list[Any], expected: list[Any]
    ) -> Failure | None:
        """Whether output, inputs or the number of gradients differ."""
        call = self._call(right, case)
        for what, g, e in zip(_WHAT, got, expected, strict=False):
            if isinstance(g, Raised):
                if g.kind == "NotImplementedError":
                    return Failure(NOT_BEGUN)
                return Failure("error", said(g)[7:], call, line=g.line, source=g.text)
            if isinstance(g, Odd):
                kind = "a tuple" if what == _GRADIENTS else "an array"
                return Failure("type", f"{what}: expected {kind}, you return {g.type}", call)
            one_by_one = what == _GRADIENTS and len(g) == len(e)
            if not one_by_one and (differs := difference(g, e)):
                kind, _, words = differs.partition(": ")
                return Failure(kind, f"{what}: {words}".rstrip(": "), call, shown(e), shown(g))
        return None

    def _of_gradients(
        self, learner: Learner, right: Any, case: Any, got: list[Any], expected: list[Any]
    ) -> Failure | None:
        """The gradient that differs, with the words of gradcheck; of several the one it names."""
        differs = [difference(g, e) for g, e in zip(got[2], expected[2], strict=True)]
        wrong = [i for i, words in enumerate(differs) if words]
        if not wrong:
            return None
        says, named = self._gradcheck(learner, right, case)
        i = named if named in wrong else wrong[0]
        kind, _, words = differs[i].partition(": ")
        name, call = f"the gradient of {_names(right)[i]}", self._call(right, case)
        call += f"\n  gy = {shown(upstream(expected[0]))}"
        text = f"{name}: {words}" if words else says or name
        return Failure(kind, text, call, shown(expected[2][i]), shown(got[2][i]))

    def _call(self, right: Any, case: Any) -> str:
        """The op and its arrays; several of them by name, on a line each."""
        call, arrays = call_of(self.op, case[0]), [shown(a) for a in case[1]]
        if len(arrays) == 1:
            return f"{call} of {arrays[0]}"
        named = zip(_names(right), arrays, strict=True)
        return "\n".join([f"{call} of", *(f"  {name} = {array}" for name, array in named)])

    def _recognised(self, exercise: Exercise, found: Sequence[Any]) -> tuple[Mistake | None, bool]:
        right = getattr(module(exercise.solution + exercise.harness), self.op)
        due = [self._of_class(right, case) for case in self.cases]

        def known(text: str) -> Iterator[tuple[bool, bool]]:
            wrong = getattr(module(text + exercise.harness), self.op)
            for case, got, expected in zip(self.cases, found, due, strict=True):
                its = self._of_class(wrong, case)
                yield _alike(got, its), not _alike(expected, its)

        differs = [_differs(got, expected) for got, expected in zip(found, due, strict=True)]
        return recognised(exercise, self.number, differs, known)


def _differs(got: Sequence[Any], expected: Sequence[Any]) -> str:
    """What differs first between two lists of output, inputs and gradients, the kind first."""
    if any(isinstance(x, (Raised, Odd)) for x in got):
        return "error"
    kinds = [difference(g, e) for g, e in zip(got, expected, strict=True)]
    if kinds[1] and not (kinds[0] or kinds[2]):
        return "changed: an input"
    return next(filter(None, kinds), "")


def _alike(one: list[Any], other: list[Any]) -> bool:
    if len(one) != len(other):
        return False
    for a, b in zip(one, other, strict=True):
        if isinstance(a, (Raised, Odd)) or isinstance(b, Raised):
            if not same_error(a, b):
                return False
        elif difference(a, b):
            return False
    return True


def upstream(y: np.ndarray) -> np.ndarray:
    """An upstream gradient of small whole numbers, none equal to its neighbour; of one number 3.

    A gradient of 1 alone would hide that it is ignored.
    """
    first = 3 if y.size == 1 else 1
    return (first + np.arange(y.size) * 7 % 11).reshape(y.shape).astype(y.dtype)


def _names(op: Any) -> list[str]:
    """What the forward of a class calls its inputs."""
    return list(inspect.signature(op.forward).parameters)[2:]  # without self and mem
