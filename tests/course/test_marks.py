"""Marks: the learner's file, the solution, and a mistake put into it."""

import pytest

from tinygraph.base.errors import ArgumentError
from tinygraph_course.content.marks import Gap, clean, parts, stub, with_body

SOLUTION = """\
__device__ float load(const float* x)
{
    // BEGIN SOLUTION 1: which element?
    const int i = threadIdx.x;

    return x[i];
    // END SOLUTION
}
"""


def test_a_gap_of_a_kernel_says_what_is_to_do_and_raises_nothing():
    assert stub(SOLUTION) == (
        "__device__ float load(const float* x)\n{\n"
        "    // TODO step 1 (about 2 lines): which element?\n}\n"
    )


def test_lines_keep_their_numbers_in_the_solution():
    before, after = SOLUTION.splitlines(), clean(SOLUTION).splitlines()
    assert len(before) == len(after)
    assert [b for a, b in zip(after, before, strict=True) if a != b] == [before[2], before[6]]


def test_parts_are_lines_and_gaps():
    found = list(parts(SOLUTION))
    assert [type(part) for part in found] == [str, str, Gap, str]
    assert found[2].lines == before_and_after(SOLUTION)


def before_and_after(text):
    lines = text.splitlines()
    return lines[3:6]


@pytest.mark.parametrize(
    "text",
    [
        "# BEGIN SOLUTION 1: a\n",
        "# END SOLUTION\n",
        "# BEGIN SOLUTION 1: a\n# BEGIN SOLUTION 1: b\n# END SOLUTION\n",
    ],
)
def test_a_mark_without_the_other(text):
    with pytest.raises(ArgumentError, match="marks in pairs"):
        stub(text)


def test_another_body_is_indented_as_the_gap():
    body = ["int j = threadIdx.y;", "return x[j];"]
    assert with_body(SOLUTION, 1, body) == (
        "__device__ float load(const float* x)\n{\n    int j = threadIdx.y;\n    return x[j];\n}\n"
    )
    with pytest.raises(ArgumentError, match="step 2: expected one gap, got 0"):
        with_body(SOLUTION, 2, body)
