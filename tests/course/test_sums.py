"""Exercise 10: what a wrong kernel shows, and the picture."""

import numpy as np
import pytest

from tests.course.test_exercises import of
from tinygraph_course.checking.picture import picture
from tinygraph_course.content.exercise import find

SUMS = find("sums")


def test_what_a_wrong_kernel_shows(tmp_path):
    """The finding, the line, and who touched what."""
    text = SUMS.solution.replace("return i < n ? x[i] : 0.0f;", "return x[i];")
    failure = of(SUMS, text, tmp_path).failure
    assert (failure.kind, failure.mistake.name) == ("out-of-bounds", "no-guard")
    assert failure.line == 1 + text[: text.index("return x[i];")].count("\n")
    assert "x[20]" in failure.text


@pytest.mark.second
def test_what_the_course_has_written_is_called_by_the_step(tmp_path):
    """A launch of a kernel of harness.cu, and its lines, which the learner's file has not."""
    text = SUMS.solution.replace("return i < n ? x[i] : 0.0f;", "return i < n - 1 ? x[i] : 0.0f;")
    failure = of(SUMS, text, tmp_path).failure
    assert failure.case.startswith("step 1, n = ") and "tg_" not in failure.text
    text = SUMS.solution.replace("        __syncthreads();\n", "")
    assert text != SUMS.solution
    failure = of(SUMS, text, tmp_path).failure
    rows = [row.split()[0] for row in failure.picture.splitlines()]
    numbers = [int(row.split()[1]) for row in failure.picture.splitlines() if row[:4] == "line"]
    assert "given" in rows and max(numbers) <= len(text.splitlines())


def test_the_picture_has_a_row_for_each_line_and_a_rule_for_each_barrier():
    touched = np.array(
        [[0, 0, 0, 0, 1, 7], [0, 1, 0, 1, 1, 7], [0, 0, 1, 0, 0, 9], [0, 1, 1, 0, 0, 9]]
    )
    finding = {"array": "parts", "index": 1, "block": (0, 0, 0)}
    answer = {"arrays": ["parts"], "touched": touched, "findings": [finding]}
    assert picture(answer, "parts").splitlines() == [
        "parts         [0]      [1]",
        "line 7        t0=     *t1=",
        "        -- __syncthreads() ",
        "line 9         t0      *t0",
        "        t3= thread 3 writes, t3 it reads, * the checker objects",
    ]
    assert picture(answer, "absent") == ""


@pytest.mark.second
def test_the_picture_is_of_the_block_in_which_it_happens(tmp_path):
    text = SUMS.solution.replace("return i < n ? x[i] : 0.0f;", "return x[i];")
    failure = of(SUMS, text, tmp_path).failure
    assert (failure.kind, failure.block) == ("out-of-bounds", 2) and "x[20]" in failure.text
    line = text[: text.index("return x[i]")].count("\n") + 1
    assert failure.picture.splitlines()[:2] == [
        "x            [16]     [17]     [18]     [19]     [20]",
        f"line {line}        t0       t1       t2       t3       *.",
    ]
