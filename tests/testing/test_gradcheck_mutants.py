"""Planted mistakes: every one is found by gradcheck, and nearly every one is named."""

import re

import pytest

from tests.testing.drawn import contracts
from tests.testing.mutants import elementwise, problems_for, reductions, shaping, windows
from tinygraph.testing.gradcheck import check_problems

pytestmark = pytest.mark.second

MUTANTS = [m for family in (elementwise, reductions, windows, shaping) for m in family.MUTANTS]
PROBLEMS = 60


def report_on(mutant, count=PROBLEMS):
    return check_problems(problems_for(mutant, count), enough=6)


@pytest.fixture(scope="module")
def reports():
    return {mutant: report_on(mutant) for mutant in MUTANTS}


def test_there_are_mutants_of_many_ops():
    """A new op needs none here: tests/cases/test_planted_mistakes.py plants the usual ones."""
    assert len(MUTANTS) >= 80 and len({m[:2] for m in MUTANTS}) == len(MUTANTS)
    mutated = {m.contract for m in MUTANTS}
    assert mutated <= set(contracts()) and len(mutated) >= 58


def test_every_mutant_is_found_and_nine_of_ten_are_named(reports):
    missed = [m[:2] for m, report in reports.items() if report.verdict != "fail"]
    unnamed = [
        (*m[:2], report.diagnosis)
        for m, report in reports.items()
        if not re.search(m.words, report.diagnosis)
    ]
    found, named = len(MUTANTS) - len(missed), len(MUTANTS) - len(unnamed)
    print(f"\n{found} of {len(MUTANTS)} mutants found, {named} with a diagnosis that names them")
    print(*unnamed, sep="\n")
    assert not missed
    assert named >= 0.9 * len(MUTANTS), unnamed


def test_the_same_ops_without_a_mistake_pass():
    """What finds the mutants finds nothing in the real ops, wrapped in the same way."""
    for mutant in MUTANTS[::9]:
        report = report_on(mutant._replace(change=lambda call: call.g), 8)
        assert report.verdict != "fail", (mutant.contract, report.diagnosis)
