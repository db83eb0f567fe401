"""What learners might write: other right answers pass, wrong ones are named, or not at all.

They stand in answers.md beside each exercise; `course verify` tries those of any exercise.
"""

import pytest

from tinygraph_course.checking.known import CHANGED, DTYPE
from tinygraph_course.checking.verify import judged
from tinygraph_course.content.exercise import exercises

FAST = {"pool"}  # of the others the second tier tries one in four


def cases():
    for exercise in exercises():
        marks = [] if exercise.name in FAST else [pytest.mark.second, pytest.mark.sweep(4)]
        for answer in exercise.answers:
            name = f"{exercise.name}-{answer.step}-{answer.name}"
            yield pytest.param(exercise, answer, marks=marks, id=name)


@pytest.mark.parametrize(("exercise", "answer"), [*cases()])
def test_an_answer_is_judged_as_its_file_says(exercise, answer):
    assert judged(exercise, answer) == ""


@pytest.mark.parametrize("exercise", exercises(), ids=lambda e: e.name)
def test_each_exercise_has_right_answers_in_another_style_and_names_of_its_catalogue(exercise):
    known = {DTYPE[0], CHANGED[0], *(mistake.name for mistake in exercise.mistakes)}
    verdicts = [answer.verdict for answer in exercise.answers]
    assert "right" in verdicts and set(verdicts) <= {*known, "right", "unknown", "unnamed"}
    assert not known & {"right", "unknown", "unnamed"}
