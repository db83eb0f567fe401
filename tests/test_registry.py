"""Every op is complete: one test for each file of ops/, which lists all that is missing."""

import pytest

import tinygraph as tg
from tests.completeness import (
    LAUNCHES_ANOTHERS,
    MOVES_NOTHING,
    STEMS,
    WITHOUT_KERNEL,
    asks_tinygraph,
    missing,
)


@pytest.mark.parametrize("stem", STEMS)
def test_an_op_is_complete(stem):
    found = missing(stem)
    assert not found, "\n" + "\n".join(found)


def test_the_waiting_lists_name_ops():
    lists = WITHOUT_KERNEL, MOVES_NOTHING, LAUNCHES_ANOTHERS
    named = set().union(*lists)
    assert set(STEMS) >= named and len(named) == sum(map(len, lists))


def through_the_op(x):
    return of_the_op(x)


def of_the_op(x):
    return tg.tanh(x).value


@pytest.mark.parametrize("wrong", [of_the_op, through_the_op, lambda x: [tg.tanh(v) for v in x]])
def test_a_reference_that_asks_the_op_is_noticed(wrong):
    assert asks_tinygraph(wrong) == "tg"
