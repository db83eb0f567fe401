"""Steps: what is tried of the learner's file, and what a step that is not passed says."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tinygraph.base.frozen import frozen
from tinygraph.testing.drawing import search
from tinygraph_course.checking.child import HANG
from tinygraph_course.checking.compare import difference
from tinygraph_course.checking.known import LIKELY, recognised
from tinygraph_course.checking.learner import Learner
from tinygraph_course.content.exercise import Exercise, Mistake

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


class Raised(NamedTuple):
    """An answer that is an error."""

    kind: str
    words: str = ""
    line: int | None = None
    text: str = ""


class Odd(NamedTuple):
    """An answer of a type that cannot be sent."""

    type: str


@frozen
class Failure:
    """Why a step is not passed.

    Attributes
    ----------
    kind : str
        "not begun", "not compiled", "error", "rule", "type", "shape", "dtype", "values", "changed",
        "gradient", or what the kernel checker calls a finding.
    text : str
        What is wrong, in words.
    case, expected, got : str
        The smallest call that shows it.
    line, source : int or None, str
        The learner's line where there is one.
    mistake : Mistake or None
        The known mistake that does the same.
    sure : bool
        Whether it does exactly the same.
    picture : str
        Which thread touched what.
    request : dict or None
        The launch of a kernel that shows it, as the learner's process was asked for it.
    block : int
        The number of the block of that launch in which it happens.
    printed : str
        What the learner's code prints in that call.
    """

    kind: str
    text: str = ""
    case: str = ""
    expected: str = ""
    got: str = ""
    line: int | None = None
    source: str = ""
    mistake: Mistake | None = None
    sure: bool = True
    picture: str = ""
    request: dict[str, Any] | None = None
    block: int = 0
    printed: str = ""

    def with_mistake(self, mistake: Mistake | None, sure: bool = True) -> Failure:
        """The same, and which known mistake it is."""
        return replace(self, mistake=mistake, sure=sure)


NOT_BEGUN, NOT_COMPILED = "not begun", "not compiled"


@frozen
class Step:
    """A step of an exercise.

    Attributes
    ----------
    number : int
    title : str
    hints : sequence of str
        Three: a question, the way, the line with blanks.  These and the title stand in hints.md.
    """

    number: int
    title: str = field(default="", kw_only=True)
    hints: Sequence[str] = field(default=(), kw_only=True)

    def run(self, exercise: Exercise, learner: Learner) -> Failure | None:
        """Try the learner's file; None where the step is passed."""
        raise NotImplementedError

    def private(self, seed: int, count: int) -> Step | None:
        """The same step with as many cases that are drawn; None where nothing says how."""
        raise NotImplementedError


@frozen
class FunctionStep(Step):
    """A step that is a function of arrays and numbers.

    Attributes
    ----------
    function : str
        Its name in the solution, or in harness.py behind it.
    cases : sequence of tuple
        Arguments, from small to large, of whole numbers where it can be: the first case that
        fails is what the learner reads.
    drawn : callable, optional
        Gives a hypothesis strategy of such tuples.
    show : callable, optional
        From the arguments to the words for them.
    differs : callable
        What differs between an answer and the right one, or that of a known mistake; empty where
        nothing does.
    words : callable, optional
        From an answer to the words for it.
    likely : float
        The share of wrong answers that have to be those of a known mistake for it to be told; 1
        where answers are a yes or no, of which any two mistakes share some.
    seed : int
        Of the cases that are drawn.
    """

    function: str = ""
    cases: Sequence[tuple[Any, ...]] = ()
    drawn: Callable[[], SearchStrategy[tuple[Any, ...]]] | None = None
    show: Callable[..., str] | None = None
    examples: int = 40
    differs: Callable[[Any, Any], str] = difference
    words: Callable[[Any], str] | None = None
    likely: float = LIKELY
    seed: int = 0

    def run(self, exercise: Exercise, learner: Learner) -> Failure | None:
        right = getattr(module(exercise.solution + exercise.harness), self.function)
        tried = list(zip(self.cases, self.ask(learner, self.cases), strict=True))
        for case, answer in tried:
            judged = self._judge(case, answer, right)
            if judged[0]:
                return self._failure(exercise, learner, case, judged, tried)
        if self.drawn is None:
            return None

        def attempt(case: tuple[Any, ...]) -> None:
            (answer,) = self.ask(learner, [case])
            judged = self._judge(case, answer, right)
            if judged[0] and hung(answer):
                raise _Endless(case, answer, judged)
            if judged[0]:
                raise _Wrong(answer, judged)

        try:
            found = search(self.drawn(), attempt, self.examples, self.seed)
        except _Endless as endless:
            case, answer, judged = endless.args
            return self._failure(exercise, learner, case, judged, [*tried, (case, answer)])
        if isinstance(found.error, _Wrong):
            answer, judged = found.error.args
            tried.append((found.case, answer))
            return self._failure(exercise, learner, found.case, judged, tried)
        if isinstance(found.error, AssertionError):
            return Failure(
                "values", "the same call gives other values each time", self._call(found.case)
            )
        if found.error is not None:  # the process has died
            raise found.error
        return None

    def private(self, seed: int, count: int) -> FunctionStep | None:
        """Cases of the same strategy, with another seed; the one that fails is shrunk."""
        if self.drawn is None:
            return None
        return replace(self, cases=(), examples=count, seed=seed)

    def ask(self, learner: Learner, cases: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Of each case the value and the arguments after it, or Raised, or Odd."""
        calls = [{"do": "call", "name": self.function, "arguments": list(case)} for case in cases]
        return [answer_of(reply) for reply in learner.ask(*calls)]

    def _judge(self, case: tuple[Any, ...], answer: Any, right: Any) -> tuple[str, Any, Any]:
        """What is wrong with an answer (empty: nothing), what was expected, what came."""
        expected = outcome(right, case)[0]
        if isinstance(answer, (Raised, Odd)):
            return said(answer), expected, answer
        value, after = answer
        what = self.differs(value, expected)
        if not what and difference(after, list(case)):
            what = "changed: an argument is another after the call than before"
        return what, expected, value

    def _failure(
        self,
        exercise: Exercise,
        learner: Learner,
        case: tuple[Any, ...],
        found: tuple[str, Any, Any],
        tried: Any,
    ) -> Failure:
        what, expected, got = found
        if isinstance(got, Raised) and got.kind == "NotImplementedError":
            return Failure(NOT_BEGUN)
        kind, _, text = what.partition(": ")
        raised = got if isinstance(got, Raised) else Raised("")
        words = self.words or shown
        failure = Failure(
            kind,
            text,
            self._call(case),
            words(expected),
            "" if isinstance(got, (Raised, Odd)) else words(got),
            raised.line,
            raised.text,
            printed="" if hung(got) else self._printed(learner, case),
        )
        return failure.with_mistake(*self._recognised(exercise, tried))

    def _printed(self, learner: Learner, case: tuple[Any, ...]) -> str:
        """What this call prints: among what all calls have printed nobody would find it."""
        before = learner.output()
        if before:
            self.ask(learner, [case])
        return learner.output()[len(before) :]

    def _call(self, case: tuple[Any, ...]) -> str:
        return self.show(*case) if self.show else call_of(self.function, case)

    def _recognised(self, exercise: Exercise, tried: Sequence[Any]) -> tuple[Mistake | None, bool]:
        """The known mistake that answers as the learner does, and whether it does so everywhere."""
        right = getattr(module(exercise.solution + exercise.harness), self.function)
        differs = [self._judge(case, answer, right)[0] for case, answer in tried]
        due = [outcome(right, case) for case, _ in tried]

        def known(text: str) -> Iterator[tuple[bool, bool]]:
            wrong = getattr(module(text + exercise.harness), self.function)
            for (case, answer), expected in zip(tried, due, strict=True):
                its = outcome(wrong, case)
                yield self._alike(case, answer, its), not self._alike(case, expected, its)

        return recognised(exercise, self.number, differs, known, self.likely)

    def _alike(self, case: tuple[Any, ...], answer: Any, known: Any) -> bool:
        """Whether an answer is that of a known mistake: the value, and whether arguments change."""
        if isinstance(answer, Raised) or isinstance(known, Raised):
            return same_error(answer, known)
        if isinstance(answer, Odd) or self.differs(answer[0], known[0]):
            return False
        before = list(case)
        return bool(difference(answer[1], before)) == bool(difference(known[1], before))


def same_error(one: Any, other: Any) -> bool:
    """Whether both raise the same, or stumble over the end of an array, as loops and slices say it.

    >>> same_error(Raised("IndexError"), Raised("ValueError")), same_error(Raised("KeyError"), 3)
    (True, False)
    """
    if not isinstance(one, Raised) or not isinstance(other, Raised):
        return False
    return one.kind == other.kind or {one.kind, other.kind} == {"IndexError", "ValueError"}


class _Wrong(AssertionError):
    """An answer to a drawn case, and what is wrong with it."""


class _Endless(BaseException):
    """A drawn case without an answer; no Exception, for which a smaller case would be sought."""


def hung(answer: Any) -> bool:
    """Whether an answer did not come in time."""
    return isinstance(answer, Raised) and answer.kind == HANG


def answer_of(reply: dict[str, Any]) -> Any:
    """The value in a reply, or Raised, or Odd."""
    if "error" in reply:
        about = reply["error"]
        return Raised(about["kind"], about["words"], about["line"], about["text"])
    return Odd(reply["odd"]) if "odd" in reply else reply["value"]


def said(answer: Raised | Odd) -> str:
    """What is wrong with it, as `difference` says it."""
    if isinstance(answer, Odd):
        return f"type: you return {answer.type}"
    return f"error: {answer.kind}: {answer.words}" if answer.words else f"error: {answer.kind}"


def module(text: str) -> ModuleType:
    """Our own text as a module."""
    made = ModuleType("tinygraph_course_text")
    before = sys.modules.get(made.__name__)
    sys.modules[made.__name__] = made  # dataclasses look their module up
    try:
        exec(compile(text, made.__name__, "exec"), vars(made))
    finally:
        if before is None:
            del sys.modules[made.__name__]
    return made


def outcome(function: Callable[..., Any], case: Sequence[Any]) -> Any:
    """The value and the arguments after it, or Raised: of our own text."""
    arguments = [copied(x) for x in case]
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of a known mistake are nobody's
            return [function(*arguments), arguments]
    except Exception as error:
        return Raised(type(error).__name__, str(error))


def copied(value: Any) -> Any:
    """A copy down to the arrays."""
    if isinstance(value, (list, tuple)):
        return type(value)(copied(x) for x in value)
    return value.copy() if isinstance(value, np.ndarray) else value


def call_of(name: str, case: Sequence[Any]) -> str:
    """A call as it would be written.

    >>> call_of("windows", (4, np.array([1.0, 2.0])))
    'windows(4, [1, 2])'
    """
    return f"{name}({', '.join(shown(x) for x in case)})"


def shown(value: Any, most: int = 48) -> str:
    """A value in few characters.

    >>> shown([np.int64(2), np.zeros(1), 0.5])
    '[2, [0], 0.5]'
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, np.ndarray):
        if value.size > most:
            return f"array {value.shape} of {value.dtype}"
        return str([_tidy(x) for x in value.tolist()] if value.ndim else _tidy(value.item()))
    if isinstance(value, (list, tuple)):
        inner = ", ".join(shown(x, most) for x in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    return str(_tidy(value)) if isinstance(value, float) else repr(value)


def _tidy(value: Any) -> Any:
    if isinstance(value, list):
        return [_tidy(x) for x in value]
    if isinstance(value, float) and np.isfinite(value):
        return int(value) if value == int(value) and abs(value) < 1e9 else float(f"{value:.6g}")
    return value
