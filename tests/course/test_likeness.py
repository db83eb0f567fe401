"""What tells one wrong kernel from another, and what does not, such as the place of barriers."""

import numpy as np
import pytest

from tinygraph_course.checking.goals import Missed
from tinygraph_course.checking.likeness import LIKELY, SURE, fingerprint, likeness

LOAD, STORE = 0, 1


def answer(touched=(), findings=(), out=(5.0,), missed=(), barriers=1, shared=("s",)):
    """A launch with the arrays x, y and s; what was touched is (array, element, epoch, thread,
    whether it was written)."""
    kinds = [dict(zip(("kind", "array", "message"), (*f, ""), strict=False)) for f in findings]
    return {
        "findings": [{"array": None, "message": "", **kind} for kind in kinds],
        "out": [np.array(out)],
        "arrays": ["x", "y", "s"],
        "shared": list(shared),
        "barriers": barriers,
        "touched": np.array([(*row, 7) for row in touched], np.int64).reshape(-1, 6),
        "missed": [Missed(goal, "", None) for goal in missed],
    }


def print_of(*answers, expected=(5.0,)):
    return fingerprint(answers, [{1: np.array(expected)}] * len(answers))


def alike(one, other, expected=(5.0,)):
    return likeness(print_of(one, expected=expected), print_of(other, expected=expected))


RACE = [("race", "s")]


def exchanged(epochs, rounds=1):
    """Two threads write s[t], then read that of the other one: in the same epoch, or the next."""
    rows = []
    for r in range(rounds):
        first, then = (e + r * (1 + epochs[-1]) for e in epochs)
        rows += [(2, t, first, t, STORE) for t in (0, 1)]
        rows += [(2, 1 - t, then, t, LOAD) for t in (0, 1)]
    return rows


def test_the_number_of_barriers_before_a_hazard_does_not_count():
    early, late = exchanged((0, 0)), exchanged((4, 4))
    assert alike(answer(early, RACE), answer(late, RACE, barriers=4)) == 1.0


def test_reads_that_come_too_early_are_not_writes_that_come_too_early():
    """Without the barrier before the reads, and without that after them."""
    before = answer(exchanged((0, 0), rounds=2), RACE)
    after = [(2, t, 0, t, STORE) for t in (0, 1)]
    after += [(2, 1 - t, 1, t, LOAD) for t in (0, 1)] + [(2, t, 1, t, STORE) for t in (0, 1)]
    (first,), (second,) = print_of(before), print_of(answer(after, RACE))
    assert first["hazards"] == ["s read too early 1", "s read too early 2"]
    assert second["hazards"] == ["s written too early 2"]
    assert alike(before, answer(after, RACE)) == 0.0


def test_two_writes_of_one_element():
    touched = [(1, 0, 0, t, STORE) for t in (0, 1)]
    (found,) = print_of(answer(touched, [("race", "y")]))
    assert found["hazards"] == ["y two writes"] and found["wrong"] == []


def test_wrong_outputs_count_and_what_they_hold():
    one = answer(out=(5.0, 7.25, 3.0))
    due = (5.0, 1.0, 2.0)
    assert alike(one, answer(out=(5.0, 7.25, 3.0)), due) == 1.0
    assert alike(one, answer(out=(5.0, 7.25, 4.0)), due) == pytest.approx(1 / 3)
    assert alike(one, answer(out=(6.0, 7.25, 3.0)), due) == pytest.approx(2 / 3)


@pytest.mark.parametrize(("kind", "kept"), [("race", False), ("out-of-bounds", True)])
def test_numbers_of_a_race_are_any(kind, kept):
    (found,) = print_of(answer(findings=[(kind, "x")], out=(9.0,)))
    assert bool(found["wrong"]) == kept


def test_a_thread_that_is_stopped_may_have_read_more_before():
    fewer, more = [(1, 0, 0, 0, STORE)], [(0, 3, 0, 0, LOAD), (1, 0, 0, 0, STORE)]
    outside = [("out-of-bounds", "x")]
    assert alike(answer(fewer, outside), answer(more, outside)) == 1.0
    assert alike(answer(fewer, out=(1.0,)), answer(more, out=(1.0,))) < SURE


def test_another_thread_writes():
    """Right numbers that cost too much: by neighbours down a column, or by any other order."""
    one, other = [[(1, i, 0, i ^ k, STORE) for i in range(4)] for k in (0, 1)]
    assert alike(answer(one, missed=["sectors"]), answer(other, missed=["sectors"])) == 0.0


def test_of_costs_alone_the_reads_of_each_array_count():
    once, often = [(0, 0, 0, 0, LOAD)], 4 * [(0, 0, 0, 0, LOAD)]
    assert alike(answer(once, missed=["reads"]), answer(often, missed=["reads"])) == 0.25
    assert alike(answer(once, out=(1.0,)), answer(often, out=(1.0,))) == 1.0


def test_what_it_costs_is_nothing_where_it_is_wrong():
    assert alike(answer(out=(1.0,), missed=["bytes"]), answer(out=(1.0,))) == 1.0


def test_a_variable_without_a_value_is_no_memory_without_one():
    variable = answer(findings=[("uninitialized", "y", "the local variable sum holds no value")])
    assert alike(variable, answer(findings=[("uninitialized", "y", "read of 4 bytes")])) == 0.0


def test_kernels_are_as_alike_as_their_least_alike_launches():
    same, other = answer(out=(1.0,)), answer(out=(2.0,))
    assert likeness(print_of(same, same), print_of(same, other)) == 0.0
    assert 0.0 < LIKELY < SURE < 1.0
