"""Exercises of one's own: where they lie, and what `course verify` says of them."""

import shutil
from pathlib import Path

import pytest

import tinygraph_course.exercises as package
from tinygraph.base.errors import ArgumentError
from tinygraph.cli import main
from tinygraph_course.checking.verify import tried
from tinygraph_course.content.exercise import Exercise, exercises, find

EXAMPLE = Path(__file__).parents[2] / "docs/course/example"
EXCHANGED = "+        m = (1 - beta) * m + beta * value"


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Make a copy of the example, with a text of one file exchanged; each has a name of its own."""
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])

    def copy(name, file="mistakes.md", old="", new=""):
        shutil.copytree(EXAMPLE / "average", tmp_path / name)
        text = (tmp_path / name / file).read_text()
        assert old in text
        (tmp_path / name / file).write_text(text.replace(old, new, 1) if old else text)
        return Exercise(tmp_path / name)

    return copy


def faults(exercise):
    return {what: fault for what, fault in tried(exercise) if fault}


@pytest.mark.second
def test_the_example_of_the_documentation_is_whole(own, tmp_path, monkeypatch, capsys):
    assert {file.name for file in EXAMPLE.rglob("*.*")} == {
        *("exercise.toml", "solution.py", "steps.py"),
        *("hints.md", "mistakes.md", "answers.md"),
    }
    own("whole")
    assert main(["course", "verify", "21"]) == 0
    out = capsys.readouterr().out
    page = (EXAMPLE.parent / "writing.md").read_text()
    assert all(f"    {line}" in page for line in out.splitlines()) and out.count("ok") == 14
    assert main(["course", "start", str(tmp_path / "folder")]) == 0
    assert "TODO step 3" in (tmp_path / "folder/21_whole.py").read_text()
    assert "A running average" in (tmp_path / "folder/21_whole.md").read_text()


@pytest.mark.second
@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("as_it_is", ("mistakes.md", "", ""), ""),
        ("rotted", ("mistakes.md", "-    m, averages", "-    m, average"), "stand once"),
        ("passes", ("mistakes.md", "np.arange(0.0, n)", "np.arange(n - 1.0, -1, -1)"), "passes"),
        ("earlier", ("mistakes.md", "Step 2: newest", "Step 3: newest"), "fails earlier"),
        (
            "other",
            ("mistakes.md", "+        m = beta * m + value", EXCHANGED),
            "is called weights-exchanged",
        ),
        ("hints", ("hints.md", "3. return (1 - beta) * beta ** ____\n", ""), "hints"),
        ("right", ("answers.md", "np.ones(n) - beta", "np.ones(n) + beta"), "step 2, values"),
        ("no_name", ("answers.md", "2, unnamed", "2, one-too-many"), "no name: step 2"),
        ("name", ("answers.md", "2, newest-first", "2, unnamed"), "is called newest-first"),
        ("step", ("answers.md", "Step 2, newest", "Step 3, newest"), "another step: step 2"),
        ("gaps", ("solution.py", "BEGIN SOLUTION 3", "BEGIN SOLUTION 4"), "gaps [1, 2, 4]"),
    ],
)
def test_what_is_wrong_with_an_exercise_is_said(own, name, change, says):
    found = faults(own(f"wrong_{name}", *change))
    assert bool(found) == bool(says) and says in " ".join(found.values())


def test_exercises_need_a_folder_and_a_number_of_their_own(own, tmp_path, monkeypatch):
    own("one")
    assert find("21").name == "one" and find("8").name == "pool"
    own("two")
    with pytest.raises(ArgumentError, match=r"a number and a name of its own .*got 21 in .*one"):
        exercises()
    monkeypatch.setattr(package, "__path__", [str(tmp_path / "absent")])
    with pytest.raises(ArgumentError, match="TINYGRAPH_EXERCISES: expected folders"):
        exercises()
