"""Mistakes that every step of numpy knows, and those that are nearly one of the catalogue."""

import pytest

from tests.course.test_exercises import of
from tests.course.test_pool import POOL, with_body
from tinygraph_course.checking.known import recognised
from tinygraph_course.content.exercise import find

RUNNING = """
    OH, OW = windows(x.shape[2], kernel, stride), windows(x.shape[3], kernel, stride)
    y = np.full((*x.shape[:2], OH, OW), {start}, {dtype})
    for i in range(kernel):
        for j in range(kernel):
            y = np.maximum(y, x[:, :, i::stride, j::stride][:, :, :OH, :OW]{more})
    return y
"""


def named(body, tmp_path, function="pool"):
    failure = of(POOL, with_body(function, body), tmp_path).failure
    return failure.kind, failure.mistake and failure.mistake.name, failure.sure


def test_numbers_of_another_dtype(tmp_path):
    body = RUNNING.format(start="-np.inf", dtype="float", more="")
    assert named(body, tmp_path) == ("dtype", "dtype", True)


def test_an_argument_that_is_another_afterwards(tmp_path):
    body = RUNNING.format(start="-np.inf", dtype="x.dtype", more="").replace(
        "    return y", "    x -= 1\n    return y"
    )
    assert named(body, tmp_path) == ("changed", "writes-into-arguments", True)


def test_a_known_mistake_and_another_dtype(tmp_path):
    """In all cases but one it answers as that mistake: that is what it looks like."""
    body = RUNNING.format(start="0", dtype="float", more=" / kernel**2")
    assert named(body.replace("np.maximum", "np.add"), tmp_path) == ("values", "mean", False)


@pytest.mark.parametrize(
    ("cases", "differs", "sure"),
    [
        ([(True, True), (True, False)], ["values", ""], True),
        ([(True, True)] * 3 + [(False, True)], ["values"] * 4, False),
        ([(True, True), (False, True)], ["values"] * 2, None),
        ([(True, True)] * 3 + [(False, True)], ["error: IndexError"] * 4, None),
        ([(True, False)] * 9 + [(False, True)], [""] * 9 + ["values"], None),
    ],
    ids=["everywhere", "nearly", "half", "both stumble", "both right"],
)
def test_what_is_told(cases, differs, sure):
    mistake, surely = recognised(find("pool"), 2, differs, lambda text: cases)
    assert (None if mistake is None else surely) == sure


def test_where_answers_are_yes_or_no_all_of_them_count():
    cases = [(True, True)] * 9 + [(False, True)]
    assert recognised(find("gradcheck"), 3, ["values"] * 10, lambda text: cases, 1)[0] is None
