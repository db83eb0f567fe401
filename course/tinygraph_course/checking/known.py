"""Which known mistake answers a step of numpy as the learner does.

A mistake is known by what it answers, case by case; how alike two wrong answers are is the share of
cases that both get wrong in the same way, of all that one of them gets wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tinygraph_course.content.exercise import Exercise, Mistake

LIKELY = 0.75

# Of every step, and after those of the step itself: the numbers are right everywhere.
DTYPE = (
    "dtype",
    "Your numbers are right, and their dtype is another. np.zeros, np.empty and np.full make\n"
    "float64 if they are told nothing else: give them the dtype that is asked for.",
)
CHANGED = (
    "writes-into-arguments",
    "Your answer is right, and an array that you were given is another afterwards: it belongs\n"
    "to the caller, who may need it again. Work on a copy.",
)


def recognised(
    exercise: Exercise,
    step: int,
    differs: Sequence[str],
    known: Callable[[str], Iterable[tuple[bool, bool]]],
    likely: float = LIKELY,
) -> tuple[Mistake | None, bool]:
    """The known mistake that answers as the learner does, and whether it does so everywhere.

    Parameters
    ----------
    exercise : Exercise
    step : int
    differs : sequence of str
        What is wrong with the learner's answer to each case, the kind first; empty for nothing.
    known : callable
        From the text of a wrong solution to two bools for each case: whether it answers as the
        learner does, and whether that is wrong.
    likely : float
        The share from which on a mistake is told that does not answer the same everywhere.
    """
    best: tuple[float, Mistake | None] = (0.0, None)
    for mistake in exercise.of_step(step):
        for text in exercise.variants(mistake):
            share, everywhere = _compared(known(text), differs, likely)
            if everywhere:
                return mistake, True
            if share > best[0]:
                best = share, mistake
    kinds = {words.partition(":")[0] for words in differs if words}
    for kind, (name, says) in (("dtype", DTYPE), ("changed", CHANGED)):
        if kinds == {kind}:
            return Mistake(step, name, says, []), True
    return (best[1], False) if best[0] >= likely else (None, False)


def _compared(
    cases: Iterable[tuple[bool, bool]], differs: Sequence[str], likely: float
) -> tuple[float, bool]:
    """The share of cases that both get wrong alike, and whether they agree everywhere.

    That both stumble says little: of all kinds of mistakes there are some that do.
    """
    either = both = agreed = 0
    for (alike, wrong), words in zip(cases, differs, strict=False):
        agreed += alike
        if not alike and likely == 1:
            return 0.0, False
        either += wrong or bool(words)
        both += alike and bool(words) and not words.startswith("error")
    return both / max(1, either), agreed == len(differs)
