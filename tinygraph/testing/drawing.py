"""Problems tried one after the other, and the smallest one that fails.

The only place where `check_op` needs hypothesis, and only for problems given as a strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tinygraph.errors import ArgumentError
from tinygraph.testing.contract import DTYPES
from tinygraph.testing.problem import LAYOUTS, Problem


class Example(NamedTuple):
    """A problem with what a stage may vary: dtype, memory layout, where the batch is cut."""

    problem: Problem
    dtype: Any = np.float64
    layout: str = "contiguous"
    cut: int = 1


class Trial(NamedTuple):
    """How many examples were tried, and the smallest that failed, with its error."""

    tried: int
    case: Example | None = None
    error: Exception | None = None


def as_problem(drawn: Any) -> Problem:
    """A Problem as it is; an array, or a tuple of arrays, as the arguments of a call.

    >>> as_problem([1.0, 2.0]).args, len(as_problem(([1.0], [2.0])).args)
    ((array([1., 2.]),), 2)
    """
    if isinstance(drawn, Problem):
        return drawn
    arrays = drawn if isinstance(drawn, tuple) else (drawn,)
    args = [None if a is None else np.asarray(a) for a in arrays]
    floats = [a if a is None or a.dtype.kind != "f" else a.astype(np.float64) for a in args]
    return Problem(tuple(floats))


def try_all(
    problems: Any, attempt: Callable[[Example], None], examples: int, seed: int, variants: bool
) -> Trial:
    """Call `attempt` with one case after the other until one raises; then look for a smaller one.

    Parameters
    ----------
    problems : sequence of Problem, or strategy of them
        Arrays and tuples of arrays are taken as the arguments of a call.
    attempt : callable
        Raises where the case is not as it should be.
    examples, seed : int
        For a strategy: how many cases are drawn, and from which seed.
    variants : bool
        Whether dtypes and layouts vary too.
    """
    if isinstance(problems, Sequence) and not isinstance(problems, (str, bytes)):
        return _try_sequence([as_problem(p) for p in problems], attempt, variants)
    if not hasattr(problems, "map") or not hasattr(problems, "filter"):
        raise ArgumentError(
            "check_op",
            "problems",
            "a list of problems, or a strategy of hypothesis",
            type(problems).__name__,
            "tg.testing.strategies has strategies",
        )
    return _try_strategy(problems, attempt, examples, seed, variants)


def _try_sequence(
    problems: list[Problem], attempt: Callable[[Example], None], variants: bool
) -> Trial:
    """All of them, the smaller ones first."""
    ordered = sorted(problems, key=lambda p: sum(a.size for a in p.arrays))
    tried = 0
    for case in _cases(ordered, variants):
        tried += 1
        try:
            attempt(case)
        except Exception as error:
            return Trial(tried, case, error)
    return Trial(tried)


def _cases(problems: list[Problem], variants: bool) -> Iterator[Example]:
    for problem in problems:
        if not variants:
            yield Example(problem)
            continue
        for dtype in DTYPES:
            for layout in LAYOUTS:
                yield Example(problem, dtype, layout)


def _try_strategy(
    strategy: Any, attempt: Callable[[Example], None], examples: int, seed: int, variants: bool
) -> Trial:
    import hypothesis  # here: a list of problems needs no library
    from hypothesis import strategies as st

    tried, last = 0, None
    plain = {"dtype": st.just(np.float64), "layout": st.just("contiguous")}
    varied = {"dtype": st.sampled_from(DTYPES[::-1]), "layout": st.sampled_from(LAYOUTS)}
    cases = st.builds(
        Example,
        problem=strategy.map(as_problem),
        cut=st.integers(0, 4),
        **(varied if variants else plain),
    )

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
    @hypothesis.given(cases)
    def run(case: Example) -> None:
        nonlocal tried, last
        tried, last = tried + 1, case
        attempt(case)

    try:
        run()
    except hypothesis.errors.Flaky:
        message = "an example that failed once did not fail again: two runs of the op differ"
        return Trial(tried, last, AssertionError(message))
    except Exception as error:  # whatever the op raises; hypothesis ends with the smallest example
        if last is None:  # the strategy itself is at fault
            raise
        return Trial(tried, last, error)
    return Trial(tried)
