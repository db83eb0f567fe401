"""Problems tried one after the other, and the smallest one that fails.

The only place that runs hypothesis, and only for problems given as a strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from tinygraph.base import ArgumentError, unmasked
from tinygraph.testing.contract import DTYPES
from tinygraph.testing.op_report import Stage
from tinygraph.testing.problem import LAYOUTS, Problem


class Example(NamedTuple):
    """A problem with what a stage may vary: dtype, memory layout, where the batch is cut."""

    problem: Problem
    dtype: Any = np.float64
    layout: str = "contiguous"
    cut: int = 1

    def __str__(self) -> str:
        """As it can be read, and typed again where its arrays are small."""
        lines = []
        for i, a in enumerate(self.problem.args):
            with np.printoptions(precision=6, threshold=40):
                shown = "None" if a is None else f"{a.dtype}{list(a.shape)} {a!r}"
            lines.append(f"  input {i}: {shown}")
        if self.problem.kwargs:
            lines.append("  " + ", ".join(f"{k}={v!r}" for k, v in self.problem.kwargs.items()))
        if self.dtype != np.float64 or self.layout != "contiguous":
            lines.append(f"  as {np.dtype(self.dtype)}, {self.layout}")
        return "\n".join(lines)


def as_problem(drawn: Any) -> Problem:
    """A Problem as it is; an array, or a tuple of arrays, as the arguments of a call.

    >>> as_problem([1.0, 2.0]).args, len(as_problem(([1.0], [2.0])).args)
    ((array([1., 2.]),), 2)
    """
    if isinstance(drawn, Problem):
        return drawn
    arrays = drawn if isinstance(drawn, tuple) else (drawn,)
    args = [None if a is None else np.asarray(unmasked("problem", "args", a)) for a in arrays]
    floats = [a if a is None or a.dtype.kind != "f" else a.astype(np.float64) for a in args]
    return Problem(tuple(floats))


def try_each(name: str, cases: Iterable[Any], attempt: Callable[[Any], None]) -> Stage:
    """Call `attempt` with one case after the other, until one raises."""
    tried = 0
    for tried, case in enumerate(cases, start=1):
        try:
            attempt(case)
        except Exception as error:
            return _failed(name, tried, error, case)
    return Stage(name, "pass", tried)


def _failed(name: str, tried: int, error: Exception, case: Any) -> Stage:
    """What went wrong; an error that is no finding of ours is named."""
    ours = isinstance(error, AssertionError)
    message = str(error).strip() if ours else f"{type(error).__name__}: {error}"
    return Stage(name, "fail", tried, message, str(case))


def try_all(
    name: str,
    problems: Any,
    attempt: Callable[[Example], None],
    examples: int,
    seed: int,
    variants: bool,
) -> Stage:
    """Try one demand on all problems, a sequence or a strategy; shrink what fails.

    `examples` are drawn of a strategy, from `seed`; with `variants` dtypes and layouts vary too.
    """
    kinds = list(product(DTYPES[::-1], LAYOUTS))[: None if variants else 1]
    if isinstance(problems, Sequence) and not isinstance(problems, (str, bytes)):
        smaller = sorted(map(as_problem, problems), key=lambda p: sum(a.size for a in p.arrays))
        return try_each(name, (Example(p, *kind) for p in smaller for kind in kinds), attempt)
    if not hasattr(problems, "map") or not hasattr(problems, "filter"):
        raise ArgumentError(
            "check_op",
            "problems",
            "a list of problems, or a strategy of hypothesis",
            type(problems).__name__,
            "tg.testing.strategies has strategies",
        )
    from hypothesis import strategies as st  # here: a list of problems needs no library

    cases = st.builds(
        lambda problem, kind, cut: Example(as_problem(problem), kind[0], kind[1], cut),
        problems,
        st.sampled_from(kinds),
        st.integers(0, 4),
    )
    found = search(cases, attempt, examples, seed)
    if found.error is not None:
        return _failed(name, found.tried, found.error, found.case)
    return Stage(name, "pass", found.tried)


class Found(NamedTuple):
    """What a search has found: how many cases were tried, the smallest that fails, its error."""

    tried: int
    case: Any = None
    error: Exception | None = None


def search(strategy: Any, attempt: Callable[[Any], None], examples: int, seed: int = 0) -> Found:
    """The smallest case of a hypothesis strategy for which `attempt` raises; the same at every run.

    >>> from hypothesis import strategies as st
    >>> def small(number):
    ...     if number > 6:
    ...         raise ValueError("too large")
    >>> found = search(st.integers(0, 99), small, examples=40)
    >>> found.case, found.error
    (7, ValueError('too large'))
    """
    import hypothesis

    tried, last = 0, None

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        print_blob=False,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
    )
    @hypothesis.given(strategy)
    def run(case: Any) -> None:
        nonlocal tried, last
        tried, last = tried + 1, case
        attempt(case)

    try:
        run()
    except hypothesis.errors.Flaky:
        message = "an example that failed once did not fail again: two runs of the op differ"
        return Found(tried, last, AssertionError(message))
    except Exception as error:  # whatever is raised; hypothesis ends with the smallest example
        if last is None:  # the strategy itself is at fault
            raise
        return Found(tried, last, error)
    return Found(tried)


def drawn(strategy: Any, count: int, seed: int) -> list[Any]:
    """So many examples of a hypothesis strategy, fewer where it has no more; the same at every run.

    >>> from hypothesis import strategies as st
    >>> drawn(st.integers(0, 1), 5, seed=3) in ([0, 1], [1, 0])
    True
    """
    found: list[Any] = []
    search(strategy, found.append, count, seed)
    return found
