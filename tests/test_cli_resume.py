"""The command: stop, resume, durations, dry runs, and what they print and return."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tinygraph
from tests.training.test_run_lock import another
from tinygraph.cli import main
from tinygraph.training import Progress, RunFolder, load_arrays

TRAIN = ["train", "numba_cnn", "--filters", "2", "--batch-size", "100", "--epochs", "3"]
BATCHES = 13  # of 1,293 training samples, 100 each


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TINYGRAPH_DATA", raising=False)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nobody stopped."""
    path = tmp_path_factory.mktemp("whole") / "run"
    assert main([*TRAIN, "--run", str(path)]) == 0
    return path


def stop_after(monkeypatch, batches, number=signal.SIGINT):
    """Send a signal to this process after so many batches, once."""
    advance, done = Progress.advance, []

    def count(self):
        advance(self)
        done.append(1)
        if len(done) == batches:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(Progress, "advance", count)


def rows_without_times(run):
    return [{k: v for k, v in row.items() if k != "seconds"} for row in RunFolder.open(run).rows()]


@pytest.mark.second
@pytest.mark.parametrize("batches", [1, BATCHES - 1, BATCHES, BATCHES + 1, 2 * BATCHES + 6])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_goes_on_with_the_same_bits(monkeypatch, capsys, whole, batches, number):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with monkeypatch.context() as patch:
        stop_after(patch, batches, number)
        assert main([*TRAIN, "--run", "run"]) == 128 + number
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    out, err = capsys.readouterr()
    assert "test accuracy" not in out and not Path("run/result.json").exists()
    (command,) = re.findall(r"resume with `tinygraph (.*)`", err)
    assert main(command.split()) == 0  # as it was told
    for name in ("parameters.safetensors", "best/parameters.safetensors", "result.json"):
        assert Path("run", name).read_bytes() == (whole / name).read_bytes()
    assert rows_without_times("run") == rows_without_times(whole)
    assert len(json.loads(Path("run/environment.json").read_text())["resumed"]) == 1


@pytest.mark.second
def test_exit_code_of_a_process_that_is_stopped():
    """Not ours to return: what the shell sees."""
    root = str(Path(tinygraph.__file__).parents[1])
    command = [sys.executable, "-m", "tinygraph", *TRAIN[:-1], "100000", "--run", "run"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": root},
    ) as process:
        lines = iter(process.stdout.readline, "")
        assert any(line.startswith("epoch ") for line in lines)  # it is under way
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert re.fullmatch(r"stopped in epoch \d+ after batch \d+; resume with `.*`\n", err)
    assert [path.name for path in Path("run").glob("checkpoints/*")]


@pytest.fixture
def stopped(monkeypatch, capsys):
    with monkeypatch.context() as patch:
        stop_after(patch, BATCHES + 2)
        assert main([*TRAIN, "--run", "run"]) == 130
    capsys.readouterr()
    return Path("run")


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "options, words",
    [
        (["--lr", "0.2"], ["lr is 0.1 there and 0.2 here"]),
        (
            ["--epochs", "9", "--seed", "4"],
            ["seed is 0 there and 4"],
        ),
        (["--data", "mnist"], ["data is 'digits' there and 'mnist' here"]),
        (["--run", "other"], ["leave out --run"]),
        (["--dry-run"], ["--dry-run"]),
    ],
)
def test_other_settings_are_refused_and_nothing_changes(capsys, stopped, options, words):
    before = contents(stopped)
    assert main(["train", "--resume", "run", *options]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ") and err.count("\n") == 1
    for word in words:
        assert word in err
    assert contents(stopped) == before and not Path("other").exists()


@pytest.mark.second
def test_a_run_that_is_trained_elsewhere_is_refused_and_may_be_read(capsys, stopped):
    before = contents(stopped)
    with another(stopped) as first:
        lock = (stopped / ".lock").read_bytes()
        for more in ([], ["--epochs", "5"]):
            assert main(["train", "--resume", "run", *more]) == 2
            err = capsys.readouterr().err
            assert err.startswith("error: run folder: run: ") and err.count("\n") == 1
            assert f"got process {first.pid} on {os.uname().nodename}, since " in err
        assert main(["train", "numba_cnn", "--run", "run"]) == 2
        assert contents(stopped) == {**before, stopped / ".lock": lock}
        assert main(["evaluate", "run"]) == 0
        assert main(["show", "run"]) == 0
        assert main(["export", "run", "model.onnx"]) == 0
    assert main(["train", "--resume", "run"]) == 0
    assert not (stopped / ".lock").exists()


@pytest.mark.second
def test_the_settings_of_the_run_may_be_repeated(capsys, stopped, whole):
    assert main([*TRAIN, "--resume", "run"]) == 0
    name = "parameters.safetensors"
    assert (stopped / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.second
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_taken(stopped, whole, recwarn):
    newest = max(stopped.glob("checkpoints/*"))
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes(data)
    assert main(["train", "--resume", "run"]) == 0
    (text,) = [str(w.message) for w in recwarn if "checkpoint" in str(w.message)]
    assert str(newest) in text and "SHA-256" in text
    name = "parameters.safetensors"
    assert (stopped / name).read_bytes() == (whole / name).read_bytes()


def test_resume_what_cannot_be_resumed(capsys, stopped):
    assert main(["train", "--resume", "absent"]) != 0
    assert "no such folder" in capsys.readouterr().err
    for path in stopped.glob("checkpoints/*"):
        path.write_bytes(path.read_bytes()[:-1])
    assert main(["train", "--resume", "run"]) == 1
    assert "a whole checkpoint" in capsys.readouterr().err


@pytest.mark.second
def test_a_finished_run_goes_on_for_longer_with_the_same_bits(stopped, whole, capsys):
    """One epoch, then up to three: as three at once."""
    assert main([*TRAIN[:-1], "1", "--run", "short"]) == 0
    capsys.readouterr()
    assert main(["train", "--resume", "short", "--epochs", "3"]) == 0
    assert "the run is finished" not in capsys.readouterr().out
    name = "parameters.safetensors"
    assert Path("short", name).read_bytes() == (whole / name).read_bytes()
    assert [row["epoch"] for row in RunFolder.open("short").rows()] == [1, 2, 3]
    assert RunFolder.open("short").config["settings"]["epochs"] == 3
    before = contents(Path("short"))
    assert main(["train", "--resume", "short", "--epochs", "2"]) == 2
    assert "--epochs: expected at least 3, which are done, got 2" in capsys.readouterr().err
    assert contents(Path("short")) == before


@pytest.mark.second
def test_a_run_says_whether_it_is_finished(stopped, capsys):
    assert main(["evaluate", "run"]) == 0
    first, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("the run stopped after 1 of 3 epochs; go on with `tinygraph train")
    assert main(["evaluate", "run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["finished"] is False
    assert main(["train", "--resume", "run"]) == 0
    assert "the run is finished" not in capsys.readouterr().out
    assert main(["train", "--resume", "run"]) == 0
    expected = "the run is finished, 3 of 3 epochs: --epochs goes on, with more of them"
    assert expected in capsys.readouterr().out.splitlines()
    assert main(["evaluate", "run"]) == 0
    assert capsys.readouterr().out.startswith("test ")


@pytest.mark.second
def test_resume_a_finished_run(stopped, capsys):
    assert main(["train", "--resume", "run"]) == 0
    first = contents(stopped)[stopped / "parameters.safetensors"]
    last_line = capsys.readouterr().out.splitlines()[-1]
    assert main(["train", "--resume", "run"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == last_line
    assert contents(stopped)[stopped / "parameters.safetensors"] == first


@pytest.mark.second
def test_a_duration_in_the_place_of_epochs(capsys):
    assert main([*TRAIN[:-2], "--duration", "0.2s", "--run", "run", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["settings"]["epochs"] is None and answer["settings"]["duration"] == 0.2
    seconds = sum(row["seconds"] for row in answer["epochs"])
    assert len(answer["epochs"]) >= 1 and seconds < 5  # that of a slow machine
    assert 0 < answer["test"]["accuracy"] <= 1


@pytest.mark.parametrize(
    "options, words",
    [
        (["--duration", "1m", "--epochs", "2"], "not allowed with"),
        (["--duration", "soon"], "--duration: expected seconds above 0, such as 30, 90s"),
        (["--duration", "0m"], "--duration: expected seconds above 0"),
        (["--backup-every", "-1s"], "backup-every"),
    ],
)
def test_bad_durations(capsys, options, words):
    assert main(["train", "numba_cnn", *options]) == 2
    assert words in capsys.readouterr().err


def test_a_dry_run_writes_nothing(capsys):
    assert main([*TRAIN, "--dry-run"]) == 0
    out = capsys.readouterr().out
    for words in ("Conv2d", "(100, 1, 8, 8)", "an epoch of 13 batches", "nothing was written"):
        assert words in out
    assert re.search(r"a step takes \d+\.\d ms", out)
    assert not list(Path().iterdir())
    assert main([*TRAIN, "--dry-run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["batches"] == BATCHES and found["step_seconds"] > 0
    assert found["loss"] == pytest.approx(np.log(10), abs=1)  # ten classes, nothing learnt
    assert not list(Path().iterdir())


@pytest.mark.second
def test_the_best_parameters(whole, capsys):
    """Those of the epoch with the highest validation accuracy, which the log names."""
    rows = RunFolder.open(whole).rows()
    accuracies = [row["validation_accuracy"] for row in rows]
    best = int(np.argmax(accuracies)) + 1
    again = [*TRAIN[:-1], str(best), "--run", "again"]  # trained for that many epochs
    assert main(again) == 0
    expected = load_arrays("again/parameters.safetensors")
    for name, array in load_arrays(whole / "best/parameters.safetensors").items():
        np.testing.assert_array_equal(array, expected[name], strict=True)
    capsys.readouterr()
    assert main(["evaluate", str(whole), "--best", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["test"]
    assert found == json.loads(Path("again/result.json").read_text())["test"]


@pytest.mark.second
def test_dated_backups(capsys, stopped):
    assert main(["train", "--resume", "run"]) == 0
    (backup,) = stopped.glob("backups/*")
    assert re.fullmatch(r"parameters-\d{8}-\d{6}\.safetensors", backup.name)
    assert set(load_arrays(backup)) == set(load_arrays(stopped / "parameters.safetensors"))
