"""The command with --device: what is stored, what goes on, and what a machine may lack."""

import json
import re
import signal
from pathlib import Path

import numpy as np
import pytest

from tests.test_cli_resume import stop_after
from tinygraph.base.errors import KernelCompileError
from tinygraph.cli import machine, main
from tinygraph.cuda import Kernel, recording
from tinygraph.recipes import task
from tinygraph.training import RunFolder, load_arrays

SIZES = ["--filters", "2", "--batch-size", "100", "--epochs", "2"]
TRAIN = ["train", "numba_cnn", *SIZES, "--device", "emulator"]
BATCHES = 13  # of 1,293 training samples, 100 each


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TINYGRAPH_DATA", raising=False)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run on the emulator that nobody stopped."""
    path = tmp_path_factory.mktemp("whole") / "run"
    assert main([*TRAIN, "--run", str(path)]) == 0
    return path


@pytest.fixture
def launches():
    """The kernels that are launched."""
    with recording() as made:
        yield made


def missing_compiler(monkeypatch):
    """A machine that has no C++ compiler, in the words of the one who looks for it."""

    def refuse():
        raise KernelCompileError("emulator: expected a C++ compiler,\nnone was found.")

    monkeypatch.setattr(task, "find_compiler", refuse)
    monkeypatch.setattr(machine, "find_compiler", refuse)
    monkeypatch.setattr(Kernel, "run", lambda *_: refuse())


def failure(capsys, arguments, code):
    """The one line on stderr of a command that must fail."""
    assert main(arguments) == code
    err = capsys.readouterr().err
    assert err.startswith("error: ") and "Traceback" not in err
    return err


# ---- train ----------------------------------------------------------------------------------


def test_the_run_knows_its_device(whole):
    assert RunFolder.open(whole).config["settings"]["device"] == "emulator"


@pytest.mark.second
def test_the_cpu_is_the_default(capsys, launches):
    assert main(["train", "numba_cnn", *SIZES, "--epochs", "1", "--run", "run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["device"] == "cpu"
    assert RunFolder.open("run").config["settings"]["device"] == "cpu" and not launches


@pytest.mark.parametrize("command", [TRAIN[:2], ["evaluate", "run"]])
@pytest.mark.parametrize("name", ["emulater", "gpu", "", "CUDA"])
def test_a_device_that_nobody_knows(capsys, command, name):
    error = failure(capsys, [*command, f"--device={name}"], 2)
    assert f"--device: expected one of cpu, emulator, cuda, got {name!r}" in error
    assert error.count("\n") == 1
    assert not list(Path().iterdir())


def test_a_device_that_is_absent(capsys):
    """No GPU here, or no CuPy, or no driver: one line, and no run folder."""
    if not machine._device("cuda").startswith("not available"):
        pytest.skip("there is a GPU")
    error = failure(capsys, [*TRAIN[:2], "--device", "cuda"], 1)
    assert "Way out" in error and "emulator" in error and error.count("\n") == 1
    assert not list(Path("runs").iterdir())


def test_no_compiler_shows_before_anything_is_written(monkeypatch, capsys):
    missing_compiler(monkeypatch)
    assert "expected a C++ compiler" in failure(capsys, TRAIN, 1)
    assert not list(Path("runs").iterdir())


def test_a_dry_run_through_the_kernels(capsys, launches):
    assert main([*TRAIN, "--dry-run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["settings"]["device"] == "emulator" and found["batches"] == BATCHES
    assert found["loss"] == pytest.approx(np.log(10), abs=1)  # ten classes, nothing learnt
    assert launches and not list(Path().iterdir())


# ---- resume ---------------------------------------------------------------------------------


@pytest.mark.second
@pytest.mark.parametrize("batches", [1, BATCHES + 2])
def test_a_stopped_run_goes_on_through_the_kernels(monkeypatch, capsys, whole, launches, batches):
    with monkeypatch.context() as patch:
        stop_after(patch, batches)
        assert main([*TRAIN, "--run", "run"]) == 128 + signal.SIGINT
    (command,) = re.findall(r"resume with `tinygraph (.*)`", capsys.readouterr().err)
    launches.clear()
    assert main(command.split()) == 0 and launches
    for name in ("parameters.safetensors", "best/parameters.safetensors", "result.json"):
        assert Path("run", name).read_bytes() == (whole / name).read_bytes()


def test_resume_on_another_device_is_refused(monkeypatch, capsys):
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        assert main([*TRAIN, "--run", "run"]) == 130
    capsys.readouterr()
    error = failure(capsys, ["train", "--resume", "run", "--device", "cpu"], 2)
    assert "device is 'emulator' there and 'cpu' here" in error


# ---- evaluate and show ----------------------------------------------------------------------


def test_evaluate_through_either(whole, capsys, launches):
    trained = json.loads((whole / "result.json").read_text())["test"]
    answers = {}
    for device in ("cpu", "emulator"):
        assert main(["evaluate", str(whole), "--device", device, "--json"]) == 0
        answers[device] = json.loads(capsys.readouterr().out)["test"]
        assert bool(launches) == (device == "emulator")
    assert answers["emulator"] == trained
    assert answers["cpu"]["loss"] == pytest.approx(trained["loss"], rel=1e-5)
    assert answers["cpu"]["accuracy"] == pytest.approx(trained["accuracy"], abs=1.01 / 359)


@pytest.mark.second
def test_a_run_is_looked_at_where_no_kernel_can_run(monkeypatch, capsys, whole):
    missing_compiler(monkeypatch)
    assert main(["evaluate", str(whole)]) == 0
    assert main(["evaluate", str(whole), "--best"]) == 0
    assert main(["show", str(whole)]) == 0
    assert "wrote " in capsys.readouterr().out
    assert "expected a C++ compiler" in failure(
        capsys, ["evaluate", str(whole), "--device", "emulator"], 1
    )


def test_a_run_of_before_there_were_devices(whole, tmp_path, capsys):
    """Its settings name no device: it was the cpu."""
    config = json.loads((whole / "config.json").read_text())
    del config["settings"]["device"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    parameters = (whole / "parameters.safetensors").read_bytes()
    (tmp_path / "parameters.safetensors").write_bytes(parameters)
    assert main(["evaluate", str(tmp_path)]) == 0
    assert main(["train", "--resume", str(tmp_path), "--device", "emulator"]) == 2
    assert "device is 'cpu' there and 'emulator' here" in capsys.readouterr().err


@pytest.mark.second
def test_parameters_are_plain_numbers(whole):
    arrays = load_arrays(whole / "parameters.safetensors")
    assert {name: (a.shape, str(a.dtype)) for name, a in arrays.items()} == {
        "0.weight": ((2, 1, 3, 3), "float32"),
        "0.bias": ((2,), "float32"),
        "4.weight": ((10, 18), "float32"),
        "4.bias": ((10,), "float32"),
    }


# ---- doctor ---------------------------------------------------------------------------------


def test_doctor_has_run_a_kernel(capsys, launches):
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["devices"]["emulator"] == "available"
    assert [launch.kernel.name for launch in launches] == ["probe"]
    assert found["compiler"]


def test_doctor_says_why_no_kernel_runs(monkeypatch, capsys):
    missing_compiler(monkeypatch)
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (emulator,) = [line for line in lines if line.startswith("emulator ")]
    assert "not available: emulator: expected a C++ compiler, none was found" in emulator
    assert "compiler   no C++ compiler found" in lines
