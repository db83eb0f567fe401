"""Hand-ins as they come from other systems: marks, encodings, archives of Windows, empty ones."""

import json
import zipfile

import pytest

from tinygraph.base.errors import ArgumentError
from tinygraph.cli import main
from tinygraph_course.checking.check import check
from tinygraph_course.content.exercise import find
from tinygraph_course.grading.grading import graded
from tinygraph_course.grading.private import Pack
from tinygraph_course.grading.submissions import submissions

NEURON, MAP = find("neuron"), find("map")


def right(exercise, data):
    found = graded(exercise, {exercise.file: data})["public"]
    assert found["ok"] and len(found["passed"]) == len(exercise.steps), found["failure"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_right_hand_in_with_a_mark_is_right(encoding):
    right(NEURON, NEURON.solution.replace("\n", "\r\n").encode(encoding))


def test_a_right_hand_in_that_names_its_encoding_is_right():
    text = f"# -*- coding: latin-1 -*-\n# größer als\n{NEURON.solution}"
    right(NEURON, text.encode("latin-1"))


def test_a_python_file_in_another_encoding_is_told_with_its_line():
    """Python itself does not run it."""
    text = f"# größer als\n{NEURON.solution}"
    failure = graded(NEURON, {NEURON.file: text.encode("latin-1")})["public"]["failure"]
    assert "no text in UTF-8" in failure["text"] and "line 1 is not UTF-8" in failure["text"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "latin-1", "cp932"])
@pytest.mark.filterwarnings("ignore:.*Latin-1")
def test_a_right_kernel_in_any_encoding_is_right(tmp_path, encoding):
    comment = "// 表\n" if encoding == "cp932" else "// größer als\n"
    path = tmp_path / MAP.file
    path.write_bytes(f"{comment}{MAP.solution}".encode(encoding))
    outcome = check(MAP.with_steps(MAP.steps[:1]), path)
    assert outcome.ok, outcome.failure


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "the file is empty"),
        ("\ufeff\r\n", "the file is empty"),
        ("# later\n\n# much later\n", "there are only comments in the file"),
        ('"""Exercise 1."""\n', "there are only comments in the file"),
    ],
)
def test_an_empty_hand_in_is_called_empty(text, words):
    failure = graded(NEURON, {NEURON.file: text.encode()})["public"]["failure"]
    assert failure["text"] == words


@pytest.mark.parametrize("text", ["", "// later\n/* and\nlater */\n"])
def test_an_empty_kernel_is_called_empty(text):
    failure = graded(MAP, {MAP.file: text.encode()})["public"]["failure"]
    assert failure["text"] in ("the file is empty", "there are only comments in the file")


def test_a_function_that_is_not_there_is_named():
    failure = graded(NEURON, {NEURON.file: b"import numpy as np\n\nrespnd = 3\n"})["public"][
        "failure"
    ]
    assert "the file defines no respond" in failure["text"] and "KeyError" not in str(failure)


def zipped(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo("x")
            entry.filename = name  # as it is: ZipInfo would mend it on Windows
            archive.writestr(entry, data)


def test_archives_of_windows(tmp_path):
    solution = NEURON.solution.encode()
    zipped(tmp_path / "ada.zip", {"homework\\": b"", f"homework\\week 1\\{NEURON.file}": solution})
    zipped(tmp_path / "bob.ZIP", {NEURON.file: solution, f"__MACOSX\\{NEURON.file}": b"rubbish"})
    zipped(tmp_path / "cem.zip", {"notes.txt": b"x"})
    zipped(tmp_path / "dia.zip", {})
    (tmp_path / "eve").mkdir()
    (tmp_path / "fay.rar").write_bytes(b"Rar!")
    ada, bob, cem, dia, eve, fay = submissions([tmp_path], [NEURON])
    assert ada.files == bob.files == {NEURON.file: solution} and not ada.problem
    assert cem.problem == "no file of the course is in it"
    assert dia.problem == eve.problem == "no file of the course is in it: it is empty"
    assert fay.problem == "a .rar archive is not read: hand in a .zip, or the files"


@pytest.mark.second
def test_a_class_from_windows_has_its_points(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "class").mkdir()
    marked = NEURON.solution.encode("utf-8-sig")
    zipped(tmp_path / "class" / "ada.zip", {f"homework\\{NEURON.file}": marked})
    zipped(tmp_path / "class" / "bob.zip", {NEURON.file: b""})
    assert main(["course", "grade", "class", "--json"]) == 0
    ada, bob = json.loads(capsys.readouterr().out)["submissions"]
    assert (ada["points"], bob["points"]) == (len(NEURON.steps), 0)
    assert "the file is empty" in (tmp_path / "grades/report.html").read_text(encoding="utf-8")


def test_a_pack_with_a_mark(tmp_path):
    (tmp_path / "pack.toml").write_bytes(Pack.made(7).content.decode().encode("utf-8-sig"))
    assert Pack.load(tmp_path / "pack.toml").seed == 7


@pytest.mark.parametrize("text", [f"seed = {'9' * 5000}", f"seed = {'[' * 100_000}"])
def test_a_private_pack_that_is_none(text):
    """It was Python's own error for so many digits or brackets."""
    with pytest.raises(ArgumentError, match="private pack"):
        Pack.read(text)


def test_an_archive_whose_directory_claims_too_much(tmp_path):
    """A read makes room for all of it first."""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(NEURON.file, NEURON.solution)
    data = path.read_bytes()
    place = data.rindex(b"PK\x01\x02") + 20  # where the compressed size stands
    path.write_bytes(data[:place] + (2**31 - 1).to_bytes(4, "little") + data[place + 4 :])
    (found,) = submissions([path], [NEURON])
    assert "longer than its archive" in str(found)
