"""`tinygraph course run`: a network that trains with the learner's ops and kernels."""

import json
from importlib import import_module
from itertools import pairwise

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.cli import main
from tinygraph.cuda import InOut
from tinygraph_course.checking.check import opened
from tinygraph_course.checking.network import DigitNetwork, trained
from tinygraph_course.checking.own import Own, Stumbled
from tinygraph_course.commands.folder import CourseFolder
from tinygraph_course.content.exercise import Exercise, exercises, find

POOL = find("pool")
WITH_NETWORK = [exercise for exercise in exercises() if exercise.network]


def framework(exercise):
    """What stands in the place of the learner's work: the framework's own."""
    return import_module(f"tests.course.framework.{exercise.name}").Framework()


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    assert main(["course", "start", str(tmp_path)]) == 0
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(DigitNetwork, "epochs", 2)
    capsys.readouterr()
    return tmp_path


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("exercise", WITH_NETWORK, ids=lambda e: e.name)
def test_it_learns_and_as_the_framework_would(exercise, folder, capsys):
    (folder / exercise.file).write_text(exercise.solution)
    assert main(["course", "run", str(exercise.number), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    losses = [row["loss"] for row in found["epochs"]]
    assert all(later < 0.7 * earlier for earlier, later in pairwise(losses))
    assert found["epochs"][-1]["accuracy"] > 0.9
    page = (folder / exercise.file).with_suffix(".html")
    assert found["files"] == [str(page)] and exercise.title in page.read_text()
    said = []
    _, rows = trained(exercise.network, framework(exercise), said.append)
    assert all(len(line) <= 60 for line in said[-len(rows) :])
    np.testing.assert_allclose([row["loss"] for row in rows], losses, rtol=1e-3)


@pytest.mark.second
def test_lines_of_a_run_fit_a_narrow_terminal(folder, monkeypatch, capsys):
    monkeypatch.setattr("tinygraph_course.commands.learn.width", lambda: 40)
    exercise = find("mlp")
    (folder / exercise.file).write_text(exercise.solution)
    assert main(["course", "run", "mlp"]) == 0
    lines = capsys.readouterr().out.split("  epoch 1")[0].splitlines()
    assert all(len(line) <= 40 for line in lines) and "solve it" in lines[-1]


def test_steps_that_are_not_right_are_refused(folder, capsys):
    assert main(["course", "run", "8"]) == 2
    error = capsys.readouterr().err
    assert "08_pool.py: expected all 5 steps to be right before a network takes them" in error
    assert "Way out: tinygraph course check 8" in error and "Traceback" not in error


def test_without_a_number_it_is_the_one_begun_or_the_last_that_is_whole(folder, capsys):
    own, (first, second, third, *_) = CourseFolder(folder), exercises()
    assert own.finished().name == first.name
    for exercise in (first, second):
        own.note(exercise, {"passed": [step.number for step in exercise.steps]})
    assert own.current().name == third.name and own.finished().name == second.name
    (folder / third.file).write_text(third.stub + "# begun")
    assert main(["course", "run"]) == 2
    assert f"{third.file}: expected all {len(third.steps)} steps" in capsys.readouterr().err
    (folder / third.file).unlink()
    assert own.finished().name == second.name


@pytest.mark.second
def test_an_error_while_it_trains_ends_in_the_learners_line(folder, capsys):
    """What no check has seen: a batch of 32."""
    old = "    N, C, H, W = x.shape\n"
    new = old + "    if N == 32:\n        raise ValueError('so many')\n"
    (folder / POOL.file).write_text(POOL.solution.replace(old, new, 1))
    assert main(["course", "run", "8"]) == 1
    out, error = capsys.readouterr()
    line = POOL.solution[: POOL.solution.index(old)].count("\n") + 3
    assert f"08_pool.py, line {line}: raise ValueError('so many')" in out
    assert "MaxPool2d: ValueError: so many" in out and "Traceback" not in out + error
    assert not (folder / "08_pool.html").exists()


def test_an_exercise_without_a_network_says_which_have_one(folder, monkeypatch, capsys):
    monkeypatch.setattr(Exercise, "network", None)
    assert main(["course", "run", "8"]) == 2
    assert "expected one with a network" in capsys.readouterr().err


def test_what_the_learner_wrote_is_called_in_his_process(tmp_path):
    file = tmp_path / POOL.file
    file.write_text(POOL.solution + "\n\ndef none():\n    return 1 / 0\n")
    with opened(POOL, file) as learner:
        own = Own(POOL, learner)
        assert own.call("windows", 7, 3, 2) == 3
        with pytest.raises(Stumbled, match="none: ZeroDivisionError") as caught:
            own.call("none")
        assert caught.value.source == "return 1 / 0"
        x = tg.Tensor([[[[1.0, 3.0], [2.0, 0.0]]]], requires_grad=True)
        own.op("MaxPool2d", 2, 2)(x).backward([[[[10.0]]]])
        assert x.grad.tolist() == [[[[0, 10], [0, 0]]]]  # by hand, on the page of the exercise


def test_a_kernel_of_the_learner_writes_what_is_marked(tmp_path):
    exercise = find("map")
    (tmp_path / exercise.file).write_text(exercise.solution)
    with opened(exercise, tmp_path / exercise.file) as learner:
        own, x, y = Own(exercise, learner), np.array([1, -2, 3], "f4"), np.ones(3, "f4")
        own.launch("axpy", 1, 2, 2.0, x, InOut(y), 3)
        assert y.tolist() == [3, -3, 7]
        own.launch("axpy", 1, 2, 2.0, x, y, 3)  # not marked: it stays
        assert y.tolist() == [3, -3, 7]
