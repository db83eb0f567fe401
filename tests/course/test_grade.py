"""`tinygraph course grade`: points, what is kept, what a class is told, and whatever crashes."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from tests.course.made_up import LOST, POOL, WRONG, passing, record
from tinygraph.base.errors import ArgumentError, TinygraphError
from tinygraph.cli import main
from tinygraph_course.checking.check import Outcome
from tinygraph_course.checking.steps import Failure
from tinygraph_course.content.exercise import find
from tinygraph_course.grading import crew, grading
from tinygraph_course.grading.classroom import csv_text, mistakes, reached, unnamed
from tinygraph_course.grading.crew import Job, grade
from tinygraph_course.grading.grading import Result, graded, key_of
from tinygraph_course.grading.private import Pack
from tinygraph_course.grading.submissions import LARGEST, submissions

ROOT = Path(__file__).parents[2]


# ---- what was handed in -------------------------------------------------------------------------


def test_a_folder_with_files_is_a_submission_and_one_with_folders_a_class(tmp_path):
    (tmp_path / "ada" / "deep").mkdir(parents=True)
    (tmp_path / "ada" / "deep" / POOL.file).write_text("mine")
    (tmp_path / "bob").mkdir()
    (tmp_path / "bob" / "notes.txt").write_text("nothing of the course")
    (tmp_path / "grades").mkdir()
    with zipfile.ZipFile(tmp_path / "cem.zip", "w") as archive:
        archive.writestr(f"homework/{POOL.file}", "his")
        archive.writestr(f"__MACOSX/{POOL.file}", "rubbish")
        archive.writestr("../../etc/passwd", "out of the folder")
    (tmp_path / "dia.zip").write_bytes(b"PK\x03\x04 and then nothing")
    ada, bob, cem, dia = submissions([tmp_path], [POOL], [tmp_path / "grades"])
    assert ada.name == "ada" and ada.files == {POOL.file: b"mine"} and not ada.problem
    assert bob.files == {} and bob.problem == "no file of the course is in it"
    assert cem.name == "cem" and cem.files == {POOL.file: b"his"}
    assert dia.files == {} and dia.problem.startswith("the archive cannot be read")
    (alone,) = submissions([tmp_path / "ada" / "deep"], [POOL])
    assert alone.name == "deep" and alone.has(POOL) and not bob.has(POOL)


def test_links_large_files_and_two_of_a_name_are_not_graded(tmp_path):
    (tmp_path / "secret.py").write_text("a teacher's file")
    for name in ("linked", "linked_folder", "large", "twice"):
        (tmp_path / "class" / name).mkdir(parents=True)
    (tmp_path / "class" / "linked" / POOL.file).symlink_to(tmp_path / "secret.py")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / POOL.file).write_text("another's")
    (tmp_path / "class" / "linked_folder" / "in").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "class" / "large" / POOL.file).write_bytes(b" " * (LARGEST + 1))
    for depth in ("a", "b"):
        (tmp_path / "class" / "twice" / depth).mkdir()
        (tmp_path / "class" / "twice" / depth / POOL.file).write_text(depth)
    found = {one.name: one for one in submissions([tmp_path / "class"], [POOL])}
    assert all(not one.files for one in found.values())
    assert found["linked"].problems == {POOL.file: "is a link, not a file"}
    assert "more than 1,048,576 bytes" in found["large"].problems[POOL.file]
    assert "twice" in found["twice"].problems[POOL.file]
    assert found["linked_folder"].problem or found["linked_folder"].problems


def test_what_is_no_folder_is_said(tmp_path):
    with pytest.raises(ArgumentError, match="expected a folder, or a zip archive"):
        submissions([tmp_path / "absent"], [POOL])
    with pytest.raises(ArgumentError, match=f"files such as {POOL.file}"):
        submissions([tmp_path], [POOL])
    for place in ("one", "two"):
        (tmp_path / place / "ada").mkdir(parents=True)
        (tmp_path / place / "ada" / POOL.file).write_text("")
    with pytest.raises(ArgumentError, match="ada twice"):
        submissions([tmp_path / "one", tmp_path / "two"], [POOL])


# ---- points -------------------------------------------------------------------------------------


def test_a_step_is_a_point_and_a_step_after_a_failure_is_not_reached():
    result = Result("ada", POOL, record([1, 2], 3, WRONG))
    assert [step.public for step in result.steps] == ["right"] * 2 + ["wrong"] + ["not reached"] * 2
    assert (result.points, result.of) == (2, 5)
    assert result.steps[2].failure.mistake.name == "window-lost"
    assert result.steps[3].failure is None


def test_private_cases_are_points_of_their_own():
    private = {"1": passing(), "2": {**passing(), "ok": False, "failure": WRONG}}
    result = Result("ada", POOL, record([1, 2], 3, WRONG, private), private=[1, 2, 3])
    assert [s.private for s in result.steps] == ["right", "wrong", "not reached", "none", "none"]
    assert (result.points, result.of) == (3, 8)


def test_what_is_missing_and_what_the_grader_could_not_do_have_no_points():
    missing = Result("ada", POOL, None, "not handed in", private=[1])
    failed = Result("bob", POOL, None, "", "MemoryError: no")
    assert {step.public for step in missing.steps} == {"missing"} and missing.points == 0
    assert missing.of == 6
    assert {step.public for step in failed.steps} == {"error"} and failed.points == 0


def test_a_check_that_executes_nothing_is_an_error_and_no_pass(tmp_path):
    pool = POOL.with_steps([])
    with pytest.raises(ArgumentError, match="at least one that is tried"):
        graded(pool, {POOL.file: POOL.solution.encode()})


def test_bytes_that_are_no_text_fail_without_an_error_of_ours():
    found = graded(POOL, {POOL.file: b"\xff\xfe\x00"})["public"]
    assert not found["ok"] and found["passed"] == [] and "no text" in found["failure"]["text"]


# ---- the class ----------------------------------------------------------------------------------


def test_mistakes_are_counted_and_the_smallest_unnamed_case_is_kept():
    likely = {**WRONG, "sure": False}
    small, large = {**LOST, "case": "f(1)"}, {**LOST, "case": "f(1, 2, 3)"}
    results = [
        Result(name, POOL, record([1, 2], 3, failure))
        for name, failure in zip("abcd", (WRONG, likely, large, small), strict=True)
    ]
    (one,) = mistakes(results)
    assert (one.name, one.surely, one.likely) == ("window-lost", ["a"], ["b"])
    (nameless,) = unnamed(results)
    assert nameless.who == ["c", "d"] and nameless.failure.case == "f(1)" and nameless.step == 3
    rows = [(step.passed, step.stopped) for step in reached(POOL, results)]
    assert rows == [(4, 0), (4, 0), (0, 4), (0, 0), (0, 0)]


def test_the_csv_names_the_mistake_of_each_learner_and_step():
    results = [Result("=ada", POOL, record([1, 2], 3, WRONG)), Result("bob", POOL, None, "not in")]
    rows = list(csv.DictReader(csv_text(results).splitlines()))
    assert len(rows) == 10 and {row["submission"] for row in rows} == {"'=ada", "bob"}
    third = rows[2]
    assert (third["step"], third["public"], third["mistake"], third["sure"]) == (
        *("3", "wrong", "window-lost", "yes"),
    )
    assert rows[5]["words"] == "not in" and rows[5]["of"] == "1" and rows[5]["points"] == "0"


# ---- several processes, and what is kept --------------------------------------------------------


@pytest.fixture
def class_of(tmp_path, monkeypatch):
    def made(**texts):
        for name, text in texts.items():
            (tmp_path / "class" / name).mkdir(parents=True, exist_ok=True)
            (tmp_path / "class" / name / POOL.file).write_text(text)
        return tmp_path / "class"

    monkeypatch.chdir(tmp_path)
    return made


def run(capsys, *arguments):
    status = main(["course", "grade", *arguments, "--json"])
    out, err = capsys.readouterr()
    return status, json.loads(out) if status != 2 else err


@pytest.mark.second
def test_a_class_is_graded_and_then_only_what_has_changed(class_of, capsys):
    lost = next(mistake for mistake in POOL.mistakes if mistake.name == "window-lost")
    folder = class_of(
        ada=POOL.solution, bob=POOL.variants(lost)[0], cem=POOL.stub, dia=POOL.solution
    )
    status, found = run(capsys, "class", "--csv", "grades.csv", "--jobs", "2")
    assert status == 0
    points = {row["submission"]: (row["points"], row["of"]) for row in found["submissions"]}
    assert points == {"ada": (5, 5), "bob": (0, 5), "cem": (0, 5), "dia": (5, 5)}
    assert [(m["mistake"], m["surely"]) for m in found["mistakes"]] == [("window-lost", 1)]
    kept = {path: path.stat().st_mtime_ns for path in Path("grades/results").iterdir()}
    assert len(kept) == 3  # two have handed in the same
    (folder / "cem" / POOL.file).write_text(POOL.solution.replace("n, c", "m, c"))
    status, found = run(capsys, "class")
    again = {path: path.stat().st_mtime_ns for path in Path("grades/results").iterdir()}
    assert {path: again[path] for path in kept} == kept and len(again) == 4
    assert found["submissions"][2]["points"] == 5
    for path in again:
        path.write_text("{damaged")
    status, found = run(capsys, "class")
    assert status == 0 and found["submissions"][0]["points"] == 5


def test_a_key_changes_with_what_judges(tmp_path):
    files = {POOL.file: b"mine"}
    keys = {
        key_of(POOL, files, None),
        key_of(POOL, {POOL.file: b"yours"}, None),
        key_of(POOL, files, Pack.made(1)),
        key_of(POOL, files, Pack.made(2)),
        key_of(find("conv"), files, None),
    }
    assert len(keys) == 5 and key_of(POOL, files, None) in keys


def _dies(connection):
    """A process that ends at its first job, as one that the system kills for its memory."""
    connection.recv_bytes()
    os._exit(9)


def _sleeps(connection):
    connection.recv_bytes()
    time.sleep(60)


@pytest.mark.second
@pytest.mark.parametrize(("serve", "words"), [(_dies, "has ended"), (_sleeps, "no end after")])
def test_a_process_that_dies_takes_one_file_with_it(tmp_path, monkeypatch, serve, words):
    patience = 60 if serve is _dies else 0.5
    monkeypatch.setattr(crew, "_serve", serve)
    jobs = [Job(f"{i}", "pool", {POOL.file: b""}) for i in range(3)]
    found = {key: record for key, record, _ in grade(jobs, tmp_path, 2, patience=patience)}
    assert set(found) == {"0", "1", "2"}
    assert all(words in record["error"] for record in found.values())
    assert not list(tmp_path.iterdir())  # an error is not kept


def test_a_grader_that_does_not_work_blames_nobody(tmp_path, monkeypatch):
    died = Outcome(POOL, [], None, Failure("error", "your program ended before it answered"))
    monkeypatch.setattr(grading, "check", lambda *arguments: died)
    with pytest.raises(TinygraphError, match="got error: your program ended"):
        list(grade([Job("0", "pool", {POOL.file: b""})], tmp_path, 1))


@pytest.mark.second
def test_stopped_in_between_it_goes_on_where_it_was(class_of, tmp_path):
    slow = "def windows(size, kernel, stride):\n    while True:\n        pass\n"
    class_of(ada=POOL.solution, **{f"slow{i}": f"{slow}# {i}\n" for i in range(6)})
    command = [sys.executable, "-m", "tinygraph", "course", "grade", "class", "--jobs", "1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        kept = tmp_path / "grades" / "results"
        for _ in range(600):
            if kept.is_dir() and len(list(kept.iterdir())) >= 1:
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 143 and b"goes on where this one was" in err
    there = list(kept.iterdir())
    assert 1 <= len(there) < 7 and all(json.loads(path.read_text()) for path in there)
