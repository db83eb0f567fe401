"""`tinygraph course`: what a learner sees, and that nothing of his is ever lost."""

import json

import pytest

from tinygraph.cli import main
from tinygraph_course.commands.folder import CourseFolder
from tinygraph_course.content.exercise import exercises, find

POOL, FIRST = find("pool"), exercises()[0]


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    assert main(["course", "start", str(tmp_path)]) == 0
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    return tmp_path


def test_start_writes_nothing_over(tmp_path, capsys):
    file = tmp_path / POOL.file
    file.write_text("mine")
    assert main(["course", "start", str(tmp_path)]) == 0
    assert file.read_text() == "mine"
    file.unlink()
    assert main(["course", "start", str(tmp_path)]) == 0
    assert file.read_text() == POOL.stub
    assert f"wrote {file}" in capsys.readouterr().out


def test_from_the_first_step_to_the_last(folder, capsys):
    file = folder / POOL.file
    assert main(["course", "check"]) == 1  # untouched, and the first one of all
    out = capsys.readouterr().out
    assert f"{FIRST.number} {FIRST.title}" in out
    assert f"next   1  {FIRST.steps[0].title}" in out and "wrong" not in out
    begun = POOL.stub.replace("raise NotImplementedError('step 1')", "return size // kernel", 1)
    file.write_text(begun)
    for _ in range(3):
        assert main(["course", "check", "8"]) == 1
    out = capsys.readouterr().out
    assert "wrong  1" in out and "You count windows that lie side by side." in out
    assert "windows(size=5, kernel=3, stride=1)\n  expected 3\n  got      1" in out
    assert out.count("`tinygraph course hint 8` helps") == 1
    assert main(["course", "hint", "8"]) == 0
    assert "8 pool, step 1, hint 1 of 3: Where does" in capsys.readouterr().out
    assert main(["course", "solution", "8"]) == 2
    assert "all right, got pool. Way out: tinygraph course hint" in capsys.readouterr().err
    file.write_text(POOL.solution)
    assert main(["course", "check", "pool", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] and found["passed"] == [1, 2, 3, 4, 5]
    assert main(["course", "status"]) == 0
    assert "8  5 of 5" in capsys.readouterr().out
    assert main(["course", "solution", "8"]) == 0
    out = capsys.readouterr().out
    assert "np.add.at" in out and "SOLUTION" not in out and "\n\n\n\n" not in out


def test_without_hypothesis_nothing_is_begun(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["course", "start", str(tmp_path)]) == 2
    assert "pip install -e '.[course]'" in capsys.readouterr().err and not [*tmp_path.iterdir()]


def test_reset_keeps_the_file(folder, capsys):
    file = folder / POOL.file
    file.write_text("mine")
    for _ in range(2):
        assert main(["course", "reset", "8"]) == 0
    assert file.read_text() == POOL.stub
    kept = sorted((folder / ".course" / "backups").iterdir())
    assert sorted(path.read_text() for path in kept) == sorted(["mine", POOL.stub])


def test_what_was_passed_before_a_reset_is_not_passed_any_more(folder, capsys):
    made = CourseFolder(folder)
    made.note(POOL, {"passed": [1, 2, 3, 4, 5]})
    assert main(["course", "status"]) == 0 and "8  5 of 5" in capsys.readouterr().out
    assert main(["course", "reset", "8"]) == 0
    assert main(["course", "status"]) == 0 and "8  0 of 5" in capsys.readouterr().out
    assert main(["course", "solution", "8"]) == 2


def test_hints_go_on_and_the_last_one_stays(folder, capsys):
    for number in (1, 2, 3, 3):
        assert main(["course", "hint", "pool"]) == 0
        assert f"hint {number} of 3" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["check", "99"], f"expected one of {FIRST.number} {FIRST.name}"),
        (["chek"], "did you mean 'check'"),
        (["check", "--jsn"], "did you mean '--json'"),
    ],
)
def test_typos(folder, capsys, arguments, words):
    assert main(["course", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_outside_of_a_course(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["course", "check"]) == 2
    assert "Way out: tinygraph course start" in capsys.readouterr().err


def test_a_file_that_is_absent_and_a_state_that_is_damaged(folder, capsys):
    (folder / ".course" / "state.json").write_text("{")
    (folder / POOL.file).unlink()
    assert main(["course", "check", "8"]) == 2
    assert f"tinygraph course start {folder} makes it" in capsys.readouterr().err


@pytest.mark.parametrize("name", [".course", ".course/pages", ".course/backups"])
def test_a_folder_of_a_stranger_leads_nowhere_else(tmp_path, capsys, name):
    """Its own folders must be real ones; a link among the files is replaced."""
    (tmp_path / "mine").mkdir()
    place = tmp_path / "course" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(tmp_path / "mine")
    assert main(["course", "start", str(tmp_path / "course")]) == 2
    assert "put a folder in its place" in capsys.readouterr().err
    assert not [*(tmp_path / "mine").iterdir()]
    place.unlink()
    assert main(["course", "start", str(tmp_path / "course")]) == 0
