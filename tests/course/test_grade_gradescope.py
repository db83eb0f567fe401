"""results.json, field by field as gradescope-autograders.readthedocs.io publishes it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile

import pytest

from tests.course.made_up import LOST, POOL, WRONG, passing, record
from tinygraph.cli import main
from tinygraph_course.content.exercise import find
from tinygraph_course.grading.gradescope import REVEAL, broken, results_json
from tinygraph_course.grading.grading import WAITING, Result

VISIBILITY = {"hidden", "after_due_date", "after_published", "visible"}
FORMATS = {"text", "html", "simple_format", "md", "ansi"}
NUMBER = (int, float)
# "Autograder Specifications", Output format: of each field the type; which of them are optional
# does not matter for a writer, but for a score on the whole or on every test.
TOP = {
    "score": NUMBER,
    "execution_time": NUMBER,
    "output": str,
    "output_format": FORMATS,
    "test_output_format": FORMATS,
    "test_name_format": FORMATS,
    "visibility": VISIBILITY,
    "stdout_visibility": VISIBILITY,
    "extra_data": dict,
    "tests": list,
    "leaderboard": list,
}
TEST = {
    "score": NUMBER,
    "max_score": NUMBER,
    "status": {"passed", "failed"},
    "name": str,
    "name_format": FORMATS,
    "number": str,
    "output": str,
    "output_format": FORMATS,
    "tags": list,
    "visibility": VISIBILITY,
    "extra_data": dict,
}
BOARD = {"name": str, "value": (*NUMBER, str), "order": {"asc", "desc"}}


def fits(found, schema):
    for name, value in found.items():
        assert name in schema, name
        allowed = schema[name]
        good = value in allowed if isinstance(allowed, set) else isinstance(value, allowed)
        assert good and not isinstance(value, bool), (name, value)


def valid(found):
    """What Gradescope takes; the same, read again."""
    found = json.loads(json.dumps(found, allow_nan=False))
    fits(found, TOP)
    assert "score" in found or all("score" in test for test in found["tests"])
    for test in found["tests"]:
        fits(test, TEST)
        assert 0 <= test["score"] <= test["max_score"]
        assert (test["status"] == "passed") == (test["score"] == test["max_score"] > 0)
    for row in found["leaderboard"]:
        fits(row, BOARD)
    return found


def test_every_field_is_one_of_the_published_format():
    printed = "mine\n"
    result = Result("ada", POOL, record([1, 2], 3, WRONG, printed=printed))
    found = valid(results_json([result], seconds=12.4))
    assert set(found) >= {"score", "output", "stdout_visibility", "tests", "execution_time"}
    assert found["score"] == 2.0 == sum(test["score"] for test in found["tests"])
    assert found["execution_time"] == 12 and found["stdout_visibility"] == "hidden"
    assert found["output_format"] == "text"  # what is told may hold < and &
    third = found["tests"][2]
    assert third["number"] == "8.3" and third["name"] == "8.3 Where it lies"
    assert third["visibility"] == "visible" and third["output_format"] == "text"
    assert "One window is missing." in third["output"] and "printed:\nmine" in third["output"]
    assert found["tests"][3]["output"] == "An earlier step comes first."
    assert found["output"].startswith("public 2 of 5\n")
    assert len({test["number"] for test in found["tests"]}) == 5


@pytest.mark.parametrize("reveal", REVEAL)
def test_what_is_told_of_a_private_case(reveal):
    hidden = {**LOST, "kind": "shape", "text": "expected (7,), yours is (3,)", "case": "pool(97)"}
    private = {"1": passing(), "2": {"ok": False, "failure": hidden}}
    result = Result("ada", POOL, record([1, 2, 3, 4, 5], private=private), private=[1, 2])
    found = valid(results_json([result], reveal))
    by = {test["number"]: test for test in found["tests"]}
    assert by["8.1.2"]["score"] == 1.0 and by["8.2.2"]["score"] == 0.0 and found["score"] == 6.0
    told = by["8.2.2"]["output"]
    assert [word in told for word in ("another shape", "yours is (3,)", "pool(97)")] == {
        "none": [False, False, False],
        "sentence": [True, False, False],
        "case": [False, True, True],
    }[reveal]
    visible = [test["visibility"] for test in found["tests"] if test["number"].endswith(".2.2")]
    assert visible == ["after_published" if reveal == "none" else "visible"]
    head = found["output"].splitlines()[0]
    if reveal == "none":
        assert head == "public 5 of 5; private checks run at grading"
        assert "private case" not in "".join(
            t["output"] for t in found["tests"] if t["number"] == "8.2"
        )
    else:
        assert head == "public 5 of 5; private 1 of 2"


def test_counted_bytes_are_a_leaderboard_of_which_fewer_are_better():
    gemm = find("gemm")
    result = Result("ada", gemm, record([1, 2, 3], 4, LOST, counted={"1": 1_064_960, "3": 99_000}))
    assert valid(results_json([result]))["leaderboard"] == [
        {"name": "11.1 bytes", "value": 1_064_960, "order": "asc"},
        {"name": "11.3 bytes", "value": 99_000, "order": "asc"},
    ]


def test_missing_files_errors_of_ours_and_no_result_at_all():
    missing = Result("ada", POOL, None, "08_pool.py was not handed in", private=[1])
    failed = Result("ada", find("conv"), None, "", "MemoryError")
    found = valid(results_json([missing, failed]))
    assert found["score"] == 0.0
    assert "08_pool.py was not handed in" in found["tests"][0]["output"]
    assert "The grader failed, not your answer" in found["tests"][-1]["output"]
    late = valid(results_json([Result("ada", POOL, None, "", WAITING)], ended="Stopped."))
    assert late["output"].startswith("Stopped.\n")
    assert late["tests"][0]["output"] == "The grading ended before this was tried."
    found = valid(broken("The archive cannot be read."))
    assert found["score"] == 0.0 and "archive" in found["tests"][0]["output"]


# ---- it is written whatever crashes -------------------------------------------------------------

BAD = {
    "absent": (lambda at: None, 2, "expected a folder"),
    "empty": (lambda at: at.mkdir(), 0, "no file of the course is in it"),
    "archive": (lambda at: at.with_suffix(".zip").write_bytes(b"PK nothing"), 0, "cannot be read"),
}


@pytest.mark.parametrize("name", BAD)
def test_results_are_there_for_whatever_is_handed_in(tmp_path, monkeypatch, name, capsys):
    monkeypatch.chdir(tmp_path)
    make, status, words = BAD[name]
    make(tmp_path / "submission")
    handed_in = "submission.zip" if name == "archive" else "submission"
    arguments = ["course", "grade", handed_in, "--gradescope", "r.json", "--exercise", "8"]
    assert main(arguments) == status
    capsys.readouterr()
    text = (tmp_path / "r.json").read_text()
    found = valid(json.loads(text))
    assert found["score"] == 0.0 and words in text


def test_an_exception_of_ours_is_told_and_goes_on(tmp_path, monkeypatch, capsys):
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / POOL.file).write_text(POOL.stub)
    monkeypatch.chdir(tmp_path)

    def fails(*arguments):
        raise RuntimeError("out of ideas")

    monkeypatch.setattr("tinygraph_course.commands.teach.grade", fails)
    with pytest.raises(RuntimeError):
        main(["course", "grade", "ada", "--gradescope", "r.json"])
    found = valid(json.loads((tmp_path / "r.json").read_text()))
    assert "The grader failed: out of ideas" in found["output"]


def test_two_submissions_have_no_results_json(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("ada", "bob"):
        (tmp_path / name).mkdir()
        (tmp_path / name / POOL.file).write_text(POOL.stub)
    assert main(["course", "grade", "ada", "bob", "--gradescope", "r.json"]) == 2
    assert "expected one submission, got 2 folders" in capsys.readouterr().err


KILLS = "import numpy as np\n\n\ndef windows(size, kernel, stride):\n    {}\n"


@pytest.mark.second
@pytest.mark.parametrize(
    "line",
    [
        "return np.ones(10 ** 9).sum() and [0] * 10 ** 11",
        "raise SystemExit(0)",
        "np.lib.stride_tricks.as_strided(np.ones(1), (10 ** 9,), (8,)).fill(1)",
    ],
    ids=["memory", "exit", "segmentation fault"],
)
def test_code_that_ends_its_process_gets_no_points_and_a_result(
    tmp_path, monkeypatch, line, capsys
):
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / POOL.file).write_text(KILLS.format(line))
    monkeypatch.chdir(tmp_path)
    assert main(["course", "grade", "ada", "--gradescope", "r.json", "--jobs", "1"]) == 0
    found = valid(json.loads((tmp_path / "r.json").read_text()))
    assert found["score"] == 0.0 and found["tests"][0]["status"] == "failed"
    assert found["tests"][0]["output"] not in ("", "This step is right.")


# ---- the archive --------------------------------------------------------------------------------


@pytest.fixture
def autograder(tmp_path, monkeypatch):
    """/autograder as Gradescope lays it out, in a folder of the test; what runs it."""

    def made(*options):
        archive, root = tmp_path / "autograder.zip", tmp_path / "autograder"
        assert main(["course", "gradescope", str(archive), "--exercise", "8", *options]) == 0
        with zipfile.ZipFile(archive) as unpacked:
            unpacked.extractall(root / "source")
        (root / "submission").mkdir()
        (root / "results").mkdir()
        # Gradescope copies it there while it builds the image
        shutil.copy(root / "source" / "run_autograder", root / "run_autograder")
        (root / "run_autograder").chmod(0o755)
        return root

    monkeypatch.setenv("AUTOGRADER_ROOT", str(tmp_path / "autograder"))
    monkeypatch.setenv("AUTOGRADER_PYTHON", sys.executable)
    return made


def test_the_archive_has_both_scripts_at_its_root(tmp_path, capsys):
    archives = [tmp_path / "one.zip", tmp_path / "two.zip"]
    for archive in archives:
        assert main(["course", "gradescope", str(archive), "--exercise", "pool", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["points"] == 5
    assert archives[0].read_bytes() == archives[1].read_bytes()
    with zipfile.ZipFile(archives[0]) as archive:
        modes = {e.filename: e.external_attr >> 16 & 0o777 for e in archive.infolist()}
        texts = {name: archive.read(name).decode() for name in ("setup.sh", "run_autograder")}
    assert modes["setup.sh"] == modes["run_autograder"] == 0o755
    assert "tinygraph/cuda/emulator" in "".join(modes)
    inside = {"tinygraph_course/checking/check.py", "tinygraph_course/exercises/pool/steps.py"}
    assert inside <= {*modes}
    assert not any("__pycache__" in name for name in modes)
    for name, text in texts.items():
        assert text.startswith("#!/usr/bin/env bash\n")
        subprocess.run(["bash", "-n", "-c", text], check=True), name
    assert "--exercise pool" in texts["run_autograder"]


@pytest.mark.second
def test_run_autograder_in_its_tree(autograder, tmp_path):
    (tmp_path / "pack.toml").write_text("seed = 4\ncases = 8\n")
    root = autograder("--private", str(tmp_path / "pack.toml"), "--reveal", "sentence")
    (root / "submission" / "homework").mkdir()
    (root / "submission" / "homework" / POOL.file).write_text(POOL.solution)
    done = subprocess.run([root / "run_autograder"], capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stderr
    found = valid(json.loads((root / "results" / "results.json").read_text()))
    assert found["score"] == 10.0 and len(found["tests"]) == 10
    assert found["output"].startswith("public 5 of 5; private 5 of 5")
    assert (root / "grades" / "report.html").exists()


@pytest.mark.second
def test_killed_before_its_end_there_is_a_result(autograder):
    root = autograder()
    (root / "submission" / POOL.file).write_text("while True:\n    pass\n")
    process = subprocess.Popen([root / "run_autograder"], start_new_session=True)
    results = root / "results" / "results.json"
    for _ in range(200):
        if results.exists() and results.stat().st_size:
            break
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    found = valid(json.loads(results.read_text()))
    assert found["score"] == 0.0 and "did not end" in found["output"]


def test_without_a_python_there_is_a_result(autograder, monkeypatch):
    root = autograder()
    monkeypatch.setenv("AUTOGRADER_PYTHON", str(root / "no-python"))
    done = subprocess.run([root / "run_autograder"], capture_output=True)
    assert done.returncode == 0
    found = valid(json.loads((root / "results" / "results.json").read_text()))
    assert "did not end" in found["tests"][0]["output"]
