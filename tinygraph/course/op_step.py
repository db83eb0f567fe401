"""Steps that are ops of the graph: compared with the solution's, then checked by differences.

The op runs in the learner's process.  A proxy in this one asks it, so that `gradcheck` works as
ever, and its diagnosis is what the learner reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import tinygraph as tg
from tinygraph.course.compare import difference
from tinygraph.course.exercise import Exercise, Mistake
from tinygraph.course.learner import Learner
from tinygraph.course.steps import (
    NOT_BEGUN,
    Failure,
    Odd,
    Raised,
    Step,
    answer_of,
    call_of,
    copied,
    module,
    said,
    shown,
)
from tinygraph.frozen import frozen
from tinygraph.memory import eager_memory
from tinygraph.testing import gradcheck

_WHAT = ("the output", "an input after forward", "the gradient")


@frozen
class OpStep(Step):
    """A step that is an op.

    Attributes
    ----------
    op : str
        The class, in the solution and in the learner's file.
    cases : sequence of (settings, arrays)
    differenced : sequence of int
        Which of them, of float64, are checked by finite differences too.
    """

    op: str = ""
    cases: Sequence[tuple[tuple[Any, ...], tuple[Any, ...]]] = ()
    differenced: Sequence[int] = (0,)

    def run(self, exercise: Exercise, learner: Learner) -> Failure | None:
        right = getattr(module(exercise.solution + exercise.harness), self.op)
        found = [self._ask(learner, case) for case in self.cases]
        for case, got in zip(self.cases, found, strict=True):
            failure = self._compared(case, got, self._of_class(right, case))
            if failure is not None:
                if failure.kind == NOT_BEGUN:
                    return failure
                return self._explained(exercise, learner, failure, found)
        diagnosis = self._diagnosis(learner, right)
        return Failure("gradient", diagnosis) if diagnosis else None

    def _diagnosis(self, learner: Learner, right: Any) -> str:
        """What finite differences say of the learner's gradients; empty where they are right."""
        for settings, arrays in (self.cases[i] for i in self.differenced):
            proxy = _Proxy(learner, self.op, settings, right)
            report = gradcheck(proxy, arrays, None, 0, False)
            if report.verdict == "fail":
                return f"{call_of(self.op, settings)}: {report.diagnosis}"
        return ""

    def _ask(self, learner: Learner, case: Any) -> list[Any]:
        """Output, arrays and gradients; Raised or Odd in the place of what is none."""
        settings, arrays = case
        needs = [a.dtype.kind == "f" for a in arrays]
        given = {"name": self.op, "settings": list(settings), "arrays": list(arrays)}
        first = answer_of(learner.ask({"do": "op", **given, "needs": needs})[0])
        if isinstance(first, (Raised, Odd)):
            return [first]
        y, after, number = first
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
                y, saved = op.forward(eager_memory(needs), *arrays)
            except Exception as error:
                return [Raised(type(error).__name__)]
            try:
                gradients = list(op.backward(eager_memory(needs), upstream(y), saved, needs))
            except Exception as error:
                return [y, list(arrays), Raised(type(error).__name__)]
        return [y, list(arrays), gradients]

    def _compared(self, case: Any, got: list[Any], expected: list[Any]) -> Failure | None:
        """The first of output, inputs and gradients that differs."""
        text = f"{call_of(self.op, case[0])} of {', '.join(shown(a) for a in case[1])}"
        for what, g, e in zip(_WHAT, got, expected, strict=False):
            if isinstance(g, Raised):
                if g.kind == "NotImplementedError":
                    return Failure(NOT_BEGUN)
                return Failure("error", said(g)[7:], text, line=g.line, source=g.text)
            if isinstance(g, Odd):
                return Failure("type", f"{what}: you return {g.type}", text)
            if differs := difference(g, e):
                kind, _, words = differs.partition(": ")
                return Failure(kind, f"{what}: {words}".rstrip(": "), text, shown(e), shown(g))
        return None

    def _explained(
        self, exercise: Exercise, learner: Learner, failure: Failure, found: list[list[Any]]
    ) -> Failure:
        """With the mistake that does the same, or else the diagnosis of gradcheck."""
        mistake, text = self._recognised(exercise, found), failure.text
        if mistake is None and text.startswith(_WHAT[2]):
            right = getattr(module(exercise.solution + exercise.harness), self.op)
            text = f"{text}. {self._diagnosis(learner, right)}"
        return replace(failure, text=text).with_mistake(mistake)

    def _recognised(self, exercise: Exercise, found: list[list[Any]]) -> Mistake | None:
        for mistake in exercise.of_step(self.number):
            wrong = getattr(module(exercise.edited(mistake) + exercise.harness), self.op)
            known = [self._of_class(wrong, case) for case in self.cases]
            if all(_alike(a, b) for a, b in zip(found, known, strict=True)):
                return mistake
        return None


def _alike(one: list[Any], other: list[Any]) -> bool:
    if len(one) != len(other):
        return False
    for a, b in zip(one, other, strict=True):
        if isinstance(a, Raised) and isinstance(b, Raised):
            if a.kind != b.kind:
                return False
        elif isinstance(a, (Raised, Odd)) or isinstance(b, Raised) or difference(a, b):
            return False
    return True


def upstream(y: np.ndarray) -> np.ndarray:
    """An upstream gradient of small whole numbers, none of them equal to its neighbour."""
    return (1 + np.arange(y.size) * 7 % 11).reshape(y.shape).astype(y.dtype)


class _Proxy(tg.Op):
    """An op whose body is the learner's; shapes and dtypes are inferred by the solution's."""

    def __init__(self, learner: Learner, name: str, settings: Any, right: Any) -> None:
        self.learner, self.of, self.settings = learner, name, settings
        self.right = right(*settings)

    def infer(self, *specs: Any) -> Any:
        return self.right.infer(*specs)

    def forward(self, mem: Any, *arrays: Any) -> Any:
        request = {"name": self.of, "settings": list(self.settings), "arrays": list(arrays)}
        y, _, number = self._asked({"do": "op", **request, "needs": list(mem.needs)})
        return y, number

    def backward(self, mem: Any, grad: Any, saved: Any, needs: Any) -> Any:
        request = {"number": saved, "grad": np.array(grad), "needs": list(needs)}
        return tuple(self._asked({"do": "backward", **request}))

    def _asked(self, request: dict[str, Any]) -> Any:
        answer = answer_of(self.learner.ask(request)[0])
        if isinstance(answer, (Raised, Odd)):
            raise tg.errors.GraphError(f"{self.of}: {said(answer)}")
        return answer
