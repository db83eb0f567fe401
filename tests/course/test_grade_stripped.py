"""The wheel for learners: no solution and no mistake in it, and every command says what is left."""

import os
import subprocess
import sys
import zipfile

import pytest

from tinygraph.cli import main
from tinygraph_course.content.exercise import exercises


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    assert main(["course", "build", "--stripped", str(folder)]) == 0
    (found,) = folder.iterdir()
    return found


def test_no_solution_is_in_it(wheel):
    assert wheel.name.endswith("+stripped-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if "_course/exercises/" in name]
        texts = {name: archive.read(name).decode() for name in names}
        record = archive.read(next(n for n in archive.namelist() if n.endswith("/RECORD"))).decode()
        assert {line.split(",")[0] for line in record.splitlines()} == set(archive.namelist())
        metadata = archive.read(next(n for n in archive.namelist() if n.endswith("/METADATA")))
    assert b"+stripped\n" in metadata
    allowed = (
        "exercise.toml",
        "text.md",
        "__init__.py",
        "solution.py",
        "solution.cu",
        "hints.md",
    )
    assert {name.rpartition("/")[2] for name in names} <= set(allowed)
    for exercise in exercises():
        place = f"tinygraph_course/exercises/{exercise.name}"
        (solution,) = [name for name in names if name.startswith(f"{place}/solution.")]
        assert texts[solution] == exercise.stub != exercise.solution
        assert texts[f"{place}/hints.md"].count("\n## Step ") == len(exercise.steps)


def test_without_the_word_nothing_is_built(tmp_path, capsys):
    assert main(["course", "build", str(tmp_path)]) == 2
    assert "pip wheel" in capsys.readouterr().err and not list(tmp_path.iterdir())


@pytest.mark.second
def test_what_a_learner_has(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    folder = tmp_path / "course"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}

    def run(*words, at=folder):
        command = [sys.executable, "-m", "tinygraph", "course", *words]
        return subprocess.run(command, cwd=at, env=environment, capture_output=True, text=True)

    assert run("start", str(folder), at=tmp_path).returncode == 0
    pool = next(exercise for exercise in exercises() if exercise.name == "pool")
    assert (folder / pool.file).read_text() == pool.stub
    for words in (["check", "8"], ["solution", "8", "--anyway"]):
        done = run(*words)
        assert done.returncode == 2 and "built without solutions" in done.stderr
        assert "hand the file in" in done.stderr
    (folder / pool.file).write_text("def windows(:\n")
    done = run("check", "8")
    assert done.returncode == 1 and "line 1" in done.stdout  # what needs no solution is told
    assert pool.steps[0].hints[0] in " ".join(run("hint", "8").stdout.split())
    assert "0 of 5" in run("status").stdout
