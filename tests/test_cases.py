"""The cases in tests/cases: each holds on every device, each file is what the reference makes.

How a case is written is described in docs/cases.md.  What reads, makes and runs cases is tested
beside it, in tests/cases.
"""

import numpy as np
import pytest

from tests.cases.make import made_text
from tests.cases.run import check
from tests.cases.schema import EDGES, FOLDER, KINDS, arrays_in, load

FILES = sorted(FOLDER.glob("*.json"))
CASES = [case for path in FILES for case in load(path)]
TITLES = [f"{case.op}: {case.name}" for case in CASES]
of_every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


# ---- the cases ------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=TITLES)
def test_float64_on_the_cpu(case):
    check(case, "cpu", "float64")


OF_ANY_DTYPE = [case for case in CASES if case.depends_on_dtype]


@pytest.mark.parametrize("case", OF_ANY_DTYPE, ids=lambda case: f"{case.op}: {case.name}")
def test_float32_on_the_cpu(case):
    check(case, "cpu", "float32")


@pytest.mark.second  # in the first tier on the cpu, and kernels in the tests of ops
@pytest.mark.parametrize("case", CASES, ids=TITLES)
def test_float32_by_kernels(case, kernel_device):
    check(case, kernel_device, "float32")


# ---- that they are enough, and what they say they are ----------------------------------------


@of_every_file
def test_every_file_has_cases_of_every_kind(path):
    cases = load(path)
    kinds = {case.kind for case in cases}
    assert kinds & set(EDGES), f"{path.name} lacks an edge: one of {EDGES}"
    assert kinds >= {"ordinary", "odd sizes"}, f"{path.name}: only {kinds}"
    assert len(cases) >= 3
    if any(a.is_float for case in cases for a in arrays_in([case.expected])):
        assert any(case.gradients for case in cases), f"{path.name}: no gradient at all"


def numbers(case):
    """Inputs and expected values, as one flat array."""
    both = arrays_in([case.args, case.expected])
    arrays = [a.values.ravel() for a in both if a.dtype != "bool"]
    return np.concatenate(arrays) if arrays else np.zeros(0)


def has_ties(case):
    """Two equal elements in one array, or in the same place of two."""
    arrays = [a.values for a in arrays_in(case.args)]
    if any(len(np.unique(a)) < a.size for a in arrays):
        return True
    a, b = arrays
    return bool(np.any(a == b))


PROPERTIES = {
    "ordinary": lambda case: np.isfinite(numbers(case)).all() and numbers(case).size > 1,
    "odd sizes": lambda case: any(
        n % 2 and n > 1 for a in arrays_in(case.args) for n in a.values.shape
    ),
    "ties": has_ties,
    "not finite": lambda case: not np.isfinite(numbers(case)).all(),
    "signed zero": lambda case: np.any((numbers(case) == 0) & np.signbit(numbers(case))),
    "empty": lambda case: any(a.values.size == 0 for a in arrays_in([case.args, case.expected])),
    "0-d": lambda case: any(a.values.ndim == 0 for a in arrays_in([case.args, case.expected])),
    "extreme": lambda case: np.any(np.abs(numbers(case)) >= 40),
}


@pytest.mark.parametrize("case", CASES, ids=TITLES)
def test_a_case_is_of_its_kind(case):
    assert PROPERTIES[case.kind](case), f"{case.file}: case {case.name!r} is not {case.kind!r}"


def test_every_kind_has_its_property():
    assert set(PROPERTIES) == set(KINDS)


@pytest.mark.parametrize("case", CASES, ids=TITLES)
def test_upstream_gradients_are_not_all_one(case):
    """One of ones hides mistakes: under it softmax has no gradient, right or wrong."""
    if case.gradients:
        upstream = np.concatenate([a.values.ravel() for a in arrays_in([case.upstream])])
        assert upstream.size < 2 or len(np.unique(upstream)) > 1


# ---- the files are what the script makes ------------------------------------------------------


@pytest.mark.second
@of_every_file
def test_made_anew_a_file_is_the_same(path):
    """Byte for byte; digits that another machine rounds otherwise are the file's."""
    text = path.read_text(encoding="utf-8")
    assert made_text(text, path.name) == text


def test_the_files_stay_small_and_readable():
    assert sum(path.stat().st_size for path in FILES) < 1_500_000
    for path in FILES:
        assert max(map(len, path.read_text(encoding="utf-8").splitlines())) <= 100, path.name
