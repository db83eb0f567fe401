"""Every exercise: the stub passes nothing, the solution everything, and each mistake is named."""

import json
import re
from itertools import combinations, product
from pathlib import Path

import pytest

from tinygraph.base.errors import ArgumentError
from tinygraph_course.checking.check import check, opened
from tinygraph_course.checking.fingerprints import made
from tinygraph_course.checking.kernel_step import KernelStep
from tinygraph_course.checking.likeness import SURE, likeness
from tinygraph_course.checking.steps import NOT_BEGUN
from tinygraph_course.content.exercise import exercises, find
from tinygraph_course.content.marks import Gap, parts

ROOT = Path(__file__).parents[2]
EXERCISES = exercises()
SLIDE = 22  # lines of a section: as slides a heading begins each of them
WAYS = 6  # that are tried of each mistake: the further ones are other numbers that are drawn
MISTAKES = [
    (exercise, mistake, way)
    for exercise in EXERCISES
    for mistake in exercise.mistakes
    for way in range(len(mistake.ways))[:WAYS]
]


def of(exercise, text, tmp_path):
    file = tmp_path / exercise.file
    file.write_text(text, encoding="utf-8")
    return check(exercise, file)


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)
def test_the_stub_passes_no_step(exercise, tmp_path):
    untouched = of(exercise, exercise.stub, tmp_path)
    assert list(untouched.passed) == [] and untouched.failure.kind == NOT_BEGUN


# chains of 100,000 nodes; several macros and kinds of builds, each of them compiled
SLOW = {"graph", "sums", "gemm", "conv_cuda", "fusion"}


@pytest.mark.parametrize(
    "exercise",
    [pytest.param(e, marks=[pytest.mark.second] if e.name in SLOW else []) for e in EXERCISES],
    ids=lambda e: e.name,
)
def test_the_solution_passes_all_steps(exercise, tmp_path):
    outcome = of(exercise, exercise.solution, tmp_path)
    assert outcome.ok, outcome.failure
    assert list(outcome.passed) == [step.number for step in exercise.steps]


@pytest.mark.second
@pytest.mark.sweep(6)
@pytest.mark.parametrize(
    ("exercise", "mistake", "way"), MISTAKES, ids=[f"{e.name}-{m.name}-{w}" for e, m, w in MISTAKES]
)
def test_a_mistake_fails_at_its_step_and_is_named(exercise, mistake, way, tmp_path):
    """Steps before it are tried only where they could have changed: see `unchanged_before`."""
    text = exercise.variants(mistake)[way]
    if unchanged_before(exercise, mistake, text):
        (tmp_path / exercise.file).write_text(text, encoding="utf-8")
        with opened(exercise, tmp_path / exercise.file) as learner:
            failure = exercise.steps[mistake.step - 1].run(exercise, learner)
    else:
        outcome = of(exercise, text, tmp_path)
        assert outcome.step == mistake.step, outcome
        failure = outcome.failure
    assert failure.mistake is mistake and failure.sure, failure


def unchanged_before(exercise, mistake, text):
    """Whether all that differs stands behind the beginning of its gap: a step calls those above."""
    above = ""
    for part in parts(exercise.marked):
        if isinstance(part, Gap) and part.step == mistake.step:
            return text.startswith(above)
        above += "".join(
            f"{x}\n" for x in (["", *part.lines, ""] if isinstance(part, Gap) else [part])
        )
    raise AssertionError(f"step {mistake.step} has no gap")


def kernel_mistakes(exercise):
    kernels = {step.number for step in exercise.steps if isinstance(step, KernelStep)}
    return {mistake.name for mistake in exercise.mistakes if mistake.step in kernels}


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)
def test_each_mistake_in_a_kernel_has_a_fingerprint_and_no_two_are_alike(exercise):
    """That they are those of today the test above says: each mistake is still surely itself."""
    known = exercise.fingerprints
    assert set(known) == kernel_mistakes(exercise)
    for one, other in combinations(exercise.mistakes, 2):
        if one.step == other.step and one.name in known:
            pairs = product(known[one.name], known[other.name])
            assert all(likeness(*pair) < SURE for pair in pairs), (one.name, other.name)


@pytest.mark.second
def test_fingerprints_made_anew_are_the_same():
    """Of the exercise with the fewest of them: they take their time."""
    exercise = find("map")
    assert json.loads(json.dumps(made(exercise))) == exercise.fingerprints


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)
def test_what_belongs_to_an_exercise(exercise):
    numbers = [step.number for step in exercise.steps]
    assert numbers == list(range(1, len(numbers) + 1)) and 3 <= len(numbers) <= 6
    assert all(len(step.hints) == 3 for step in exercise.steps)
    assert len(exercise.predictions) == 2
    names = [mistake.name for mistake in exercise.mistakes]
    assert len(names) == len(set(names))
    for mistake in exercise.mistakes:
        assert mistake.step in numbers and 1 <= mistake.says.count("\n") + 1 <= 3
        assert all(len(line) <= 88 for line in mistake.says.splitlines())
        texts = exercise.variants(mistake)  # its text still stands in the solution
        assert len(set(texts)) == len(mistake.ways) and exercise.solution not in texts
    steps = set(map(int, re.findall(r"TODO step (\d+)", exercise.stub)))
    assert steps == set(numbers)
    for heading in ("What it is for", "Formula", "Picture", "By hand", "Afterwards"):
        assert f"## {heading}" in exercise.text
    for section in exercise.text.split("\n## "):
        assert section.count("\n") <= SLIDE, section
    prose = re.sub(r"^    .*$|`[^`]*`", "", exercise.text, flags=re.MULTILINE)
    assert not re.search(r"\w\*\w", prose)  # which Markdown would take for emphasis


def test_each_exercise_has_a_page():
    pages = {path.stem: path.read_text() for path in (ROOT / "docs/course").glob("*_*.md")}
    assert set(pages) == {exercise.file.partition(".")[0] for exercise in EXERCISES}
    assert all(f"slides/{name}.html" in text for name, text in pages.items())


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)
def test_formulas_and_pictures_fit_a_projector(exercise):
    """A page that is 1024 pixels wide has room for 84 characters of code."""
    wide = [line for line in exercise.text.splitlines() if re.match(" {4}.{85}", line)]
    assert wide == []


def test_an_exercise_is_found_by_number_name_or_file():
    assert {find(word).name for word in ("8", "pool", "08_pool.py", "08_pool")} == {"pool"}
    with pytest.raises(ArgumentError, match="did you mean 'pool'"):
        find("pol")
