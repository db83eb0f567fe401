"""Exercise 9: bytes count."""

import pytest

from tests.course.test_exercises import of
from tinygraph.cuda.emulator.translate import translate
from tinygraph_course.checking.child import Child, Limits
from tinygraph_course.content.exercise import find

MAP = find("map")
SCALE = "        m[i] *= s[i % cols];"


@pytest.mark.second
def test_columns_move_too_many_bytes_and_it_is_told_where(tmp_path):
    body = "        { int c = i / rows, r = i % rows; m[r * cols + c] *= s[c]; }"
    failure = of(MAP, MAP.solution.replace(SCALE, body), tmp_path).failure
    assert (failure.kind, failure.mistake.name) == ("sectors", "down-the-columns")
    assert "4.5 at most" in failure.text
    assert failure.line == MAP.solution[: MAP.solution.index(SCALE)].count("\n") + 1


def test_what_is_compiled_does_not_depend_on_the_folder_of_a_check(tmp_path):
    """Or it would be compiled anew at each of them: it is found again by its text."""
    units = []
    for folder in ("one", "other"):
        file = tmp_path / folder / MAP.file
        file.parent.mkdir()
        file.write_text(MAP.solution)
        kernel = Child(file, MAP.solution, Limits())._kernel("relu", {})
        units.append(translate(kernel.source).text)
        assert kernel.source.name == MAP.file
    assert units[0] == units[1]
