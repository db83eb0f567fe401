"""What is tried of exercise 21: beta is a half or a quarter, and all numbers are exact."""

import numpy as np

from tinygraph_course.checking.steps import FunctionStep


def values(*numbers):
    return np.array(numbers, np.float64)


def series():
    from hypothesis import strategies as st

    numbers = st.lists(st.integers(-8, 8), min_size=1, max_size=6)
    return st.tuples(numbers.map(lambda x: values(*x)), st.sampled_from([0.25, 0.5, 0.75]))


def lengths():
    from hypothesis import strategies as st

    return st.tuples(st.integers(1, 8), st.sampled_from([0.25, 0.5, 0.75]))


SERIES = [
    (values(8), 0.5),
    (values(8), 0.25),
    (values(8, 8), 0.5),
    (values(8, 16), 0.25),
    (values(4, 0, 0, 16), 0.5),
]

STEPS = [
    FunctionStep(
        1,
        "follow",
        SERIES,
        series,
    ),
    FunctionStep(
        2,
        "weights",
        [(1, 0.5), (2, 0.5), (3, 0.25), (4, 0.75)],
        lengths,
    ),
    FunctionStep(
        3,
        "corrected",
        SERIES,
        series,
    ),
]
