"""Advice of the course that is a command works when it is typed in."""

import re
from pathlib import Path

import pytest

import tinygraph_course
from tests.advice import typed_in
from tests.test_advice import FOLDER, NO_WAY_OUT, here, places, shell, way_out
from tinygraph.base.errors import ArgumentError
from tinygraph.cli import main
from tinygraph.cli.arguments import parse
from tinygraph_course.checking.check import opened
from tinygraph_course.commands import protocol
from tinygraph_course.commands.folder import CourseFolder
from tinygraph_course.content.exercise import find
from tinygraph_course.grading.private import Pack

__all__ = ["here"]  # the folder that each test is in

ROOT = Path(tinygraph_course.__file__).parent


def test_a_course_is_begun_where_it_says(tmp_path, capsys):
    Path(FOLDER).mkdir()
    with pytest.raises(ArgumentError) as raised:
        CourseFolder(Path(FOLDER))
    said = way_out(raised.value).removesuffix(" begins it there")
    assert main(shell(said)[1:]) == 0 and (Path(FOLDER) / ".course").is_dir()
    CourseFolder(Path(FOLDER))
    typed_in(raised.value)


def test_a_file_of_the_course_is_made_as_it_says(tmp_path, capsys):
    exercise = find("8")
    path = Path(FOLDER) / exercise.file
    with pytest.raises(ArgumentError) as raised, opened(exercise, path):
        pass
    said = way_out(raised.value).removesuffix(" makes it")
    assert main(shell(said)[1:]) == 0 and path.is_file()
    typed_in(raised.value)


def test_a_pack_is_made_as_it_says(tmp_path):
    """Making one takes minutes: test_grade_private.py does."""
    with pytest.raises(ArgumentError) as raised:
        Pack.load(Path(FOLDER))
    said = way_out(raised.value).removesuffix(" makes one").replace("SEED", "7")
    assert parse(shell(said)[1:]).out == FOLDER
    with pytest.raises(ArgumentError, match="tinygraph course private SEED OUT makes one"):
        Path("pack.toml").write_text("nothing of a pack")
        Pack.load(Path("pack.toml"))
    typed_in(raised.value)


@pytest.mark.second
def test_hints_and_checks_of_the_course_as_it_says(tmp_path, monkeypatch, capsys):
    assert main(["course", "start", FOLDER]) == 0
    monkeypatch.chdir(FOLDER)
    for command, words in ((["solution", "8"], "course hint 8"), (["run", "8"], "course check 8")):
        assert main(["course", *command]) == 2
        said = re.search(f"tinygraph ({words})", capsys.readouterr().err)
        assert said and main(shell(said[1])) in (0, 1)
        capsys.readouterr()


def test_a_solution_is_printed_as_it_says(tmp_path, monkeypatch, capsys):
    assert main(["course", "start", FOLDER]) == 0
    monkeypatch.chdir(FOLDER)
    text = (ROOT / "commands" / "watch.py").read_text(encoding="utf-8")
    said = re.search(r"`tinygraph (course solution \{number\} --anyway)` prints it", text)[1]
    assert main(shell(said.replace("{number}", "8"))) == 0
    assert "np.add.at" in capsys.readouterr().out


def test_a_course_for_a_protocol_is_begun_as_it_says(tmp_path, capsys):
    with pytest.raises(ArgumentError) as raised:
        protocol._book(Path(FOLDER) / "mine.toml")
    assert main(shell(way_out(raised.value).removesuffix(" begins one"))[1:]) == 0
    protocol._book(Path(FOLDER) / "mine.toml")
    typed_in(raised.value)


TYPED = {  # a place of advice, and the test that types it in
    "commands/folder.py:__init__": "test_a_course_is_begun_where_it_says",
    "checking/check.py:opened": "test_a_file_of_the_course_is_made_as_it_says",
    "grading/private.py:load": "test_a_pack_is_made_as_it_says",
    "grading/private.py:read": "test_a_pack_is_made_as_it_says",
    "commands/protocol.py:_book": "test_a_course_for_a_protocol_is_begun_as_it_says",
    "commands/watch.py:_pressed": "test_a_solution_is_printed_as_it_says",
    "commands/learn.py:solution": "test_hints_and_checks_of_the_course_as_it_says",
    "commands/learn.py:run": "test_hints_and_checks_of_the_course_as_it_says",
}
NOT_TYPED = {
    "commands/learn.py:start": NO_WAY_OUT,
    "grading/stripped.py:_about": NO_WAY_OUT,
}


def test_each_place_that_names_a_command_is_typed_in_or_says_why_not():
    assert set(places(ROOT)) == {*TYPED, *NOT_TYPED}
    assert all(test in globals() for test in TYPED.values())
