"""The command: what it prints and returns, above all for bad input."""

import errno
import gzip
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import tinygraph
from tests.data.idx_bytes import idx
from tinygraph import cli
from tinygraph.cli import machine, main
from tinygraph.cli.arguments import commands
from tinygraph.training import RunFolder

mnist_module = sys.modules["tinygraph.data.mnist"]
TRAIN = ["train", "numba_cnn", "--filters", "1", "--epochs", "1"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Runs go to a folder of the test; no data folder is set."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TINYGRAPH_DATA", raising=False)


def fails(capsys, arguments, code=2):
    """The one line on stderr of a command that must fail."""
    assert main(arguments) == code
    out, err = capsys.readouterr()
    assert err.startswith("error: ") and err.count("\n") == 1, err
    assert "Traceback" not in out + err
    return err


# ---- usage ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, hint",
    [
        ([], "expected a command"),
        (["trian"], "did you mean 'train'"),
        (["--verison"], "did you mean '--version'"),
        (["train"], "RECIPE"),
        (["train", "numba_cn"], "did you mean 'numba_cnn'"),
        (["train", "zzz"], "`tinygraph recipes` lists them"),
        (["train", "numba_cnn", "--epoch", "3"], "did you mean '--epochs'"),
        (["train", "numba_cnn", "--filtres=3"], "did you mean '--filters'"),
        (["train", "numba_cnn", "--data", "mnits"], "did you mean 'mnist'"),
        (["train", "numba_cnn", "--data", "zzz"], "known: digits, mnist"),
        (["evaluate", "run", "--recipe"], "expected one argument"),
        (["train", "numba_cnn", "more"], "unknown argument 'more'"),
        (["train", "numba_cnn", "--epochs"], "expected one argument"),
        (["evaluate"], "RUN"),
        (["doctor", "--jsno"], "did you mean '--json'"),
    ],
)
def test_bad_usage(capsys, arguments, hint):
    assert hint in fails(capsys, arguments)


@pytest.mark.parametrize("option", ["--filters", "--batch-size", "--epochs"])
@pytest.mark.parametrize("value", ["0", "-3", "2.5", "many", "1e3", "99999999999"])
def test_bad_sizes(capsys, option, value):
    error = fails(capsys, ["train", "numba_cnn", f"{option}={value}"])
    assert f"{option}: expected a whole number from 1" in error and repr(value) in error


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "fast"])
def test_bad_learning_rate(capsys, value):
    assert "--lr: expected a finite number above 0, got " in fails(
        capsys, ["train", "numba_cnn", f"--lr={value}"]
    )


@pytest.mark.parametrize("value", ["-1", "18446744073709551616", "x"])
def test_bad_seed(capsys, value):
    assert "--seed: expected a whole number from 0" in fails(capsys, [*TRAIN, f"--seed={value}"])


@pytest.mark.parametrize("command", [[], *([name] for name in commands())])
def test_help_has_an_example_that_parses(capsys, command):
    with pytest.raises(SystemExit) as stop:
        main([*command, "--help"])
    assert stop.value.code == 0
    example = re.search(r"^example: tinygraph (.*)$", capsys.readouterr().out, re.MULTILINE)
    assert cli.parse(shlex.split(example.group(1))).run_command


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.startswith(f"tinygraph {tinygraph.__version__}")


# ---- data files -----------------------------------------------------------------------------


def small_mnist(folder, monkeypatch, labels=60):
    """Made files in place of MNIST's, held to hashes of their own."""
    rng = np.random.default_rng(0)
    published = {}
    for part in ("train", "t10k"):
        for stem, array in (
            (f"{part}-images-idx3-ubyte", rng.integers(0, 256, (60, 28, 28), np.uint8)),
            (f"{part}-labels-idx1-ubyte", rng.integers(0, 10, labels, np.uint8)),
        ):
            data = gzip.compress(idx(array), mtime=0)
            (folder / f"{stem}.gz").write_bytes(data)
            sha256 = hashlib.sha256(data).hexdigest()
            published[f"{stem}.gz"] = mnist_module.Published(len(data), sha256)
    monkeypatch.setattr(mnist_module, "FILES", published)
    return folder / "train-images-idx3-ubyte.gz"


MNIST = [*TRAIN, "--data", "mnist"]


@pytest.mark.second
def test_mnist_files_in_a_folder(tmp_path, monkeypatch, capsys):
    small_mnist(tmp_path, monkeypatch)
    assert main([*MNIST, "--data-dir", str(tmp_path), "--run", "run"]) == 0
    trained = capsys.readouterr().out.splitlines()[-1]
    assert main(["evaluate", "run"]) == 0  # it remembers the folder
    assert capsys.readouterr().out.splitlines()[-1] == trained


@pytest.mark.parametrize(
    "damage, words",
    [
        (lambda data: data[:-5], "truncated"),
        (lambda data: data + b"x", "too long"),
        (lambda data: data[:99] + bytes([data[99] ^ 1]) + data[100:], "corrupt"),
    ],
)
def test_damaged_data_files(tmp_path, monkeypatch, capsys, damage, words):
    path = small_mnist(tmp_path, monkeypatch)
    path.write_bytes(damage(path.read_bytes()))
    error = fails(capsys, [*MNIST, "--data-dir", str(tmp_path)])
    assert words in error and str(path) in error
    assert not list(Path("runs").iterdir())  # no empty run stays behind


def test_label_count_differs(tmp_path, monkeypatch, capsys):
    small_mnist(tmp_path, monkeypatch, labels=59)
    error = fails(capsys, [*MNIST, "--data-dir", str(tmp_path)])
    assert "expected 60 labels, one for each image, got 59" in error


def test_data_files_that_are_missing(tmp_path, capsys):
    for folder in (tmp_path, tmp_path / "absent"):
        error = fails(capsys, [*MNIST, "--data-dir", str(folder)])
        for part in (
            "train-images-idx3-ubyte.gz",
            str(folder),
            "--data-dir",
            "$TINYGRAPH_DATA",
            "--download",
        ):
            assert part in error
    assert "name the folder" in fails(capsys, MNIST)


# ---- run folders ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run, made once; tests copy it before they damage it."""
    path = tmp_path_factory.mktemp("finished") / "run"
    assert main([*TRAIN, "--run", str(path)]) == 0
    return path


@pytest.fixture
def copied(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "copy")


def test_a_run_folder_that_cannot_be_made(tmp_path, capsys):
    (tmp_path / "file").write_text("x")
    error = fails(capsys, [*TRAIN, "--run", str(tmp_path / "file" / "run")], code=1)
    assert "expected a place that can be written, got Not a directory" in error
    assert "got a file" in fails(capsys, [*TRAIN, "--run", str(tmp_path / "file")])
    assert "never written over" in fails(capsys, [*TRAIN, "--run", str(tmp_path)])


@pytest.mark.parametrize("code, words", [(errno.EROFS, "Read-only"), (errno.ENOSPC, "No space")])
def test_a_disk_that_cannot_be_written(monkeypatch, capsys, code, words):
    def refuse(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "replace", refuse)
    assert words in fails(capsys, TRAIN, code=1)


def test_evaluate_gives_the_accuracy_of_the_training(finished, capsys):
    assert main(["evaluate", str(finished)]) == 0
    result = json.loads((finished / "result.json").read_text())["test"]
    assert capsys.readouterr().out.splitlines() == [
        f"test loss {result['loss']:.4f}",
        f"test accuracy {result['accuracy']:.4f}",
    ]


def test_evaluate_a_flipped_bit(copied, capsys):
    path = copied / "parameters.safetensors"
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    error = fails(capsys, ["evaluate", str(copied)])
    assert "SHA-256" in error and str(path) in error
    assert "SHA-256" in fails(capsys, ["show", str(copied)])


def test_evaluate_a_file_that_the_safetensors_library_wrote(copied, capsys):
    assert main(["evaluate", str(copied)]) == 0
    before = capsys.readouterr().out
    path = copied / "parameters.safetensors"
    save_file(load_file(path), path)
    assert b"sha256" not in path.read_bytes()
    assert main(["evaluate", str(copied)]) == 0
    assert capsys.readouterr().out == before
    path.write_bytes(path.read_bytes()[:-4])
    assert str(path) in fails(capsys, ["evaluate", str(copied)])


@pytest.mark.parametrize("text", ["{", "{}", '{"recipe": 5}', '{"recipe": "numba_cnn"}'])
def test_evaluate_a_broken_config(copied, capsys, text):
    (copied / "config.json").write_text(text)
    assert "config.json" in fails(capsys, ["evaluate", str(copied)])


def test_evaluate_a_recipe_of_another_version(copied, capsys):
    (copied / "config.json").write_text('{"recipe": "numba_cn"}')
    assert "did you mean 'numba_cnn'" in fails(capsys, ["evaluate", str(copied)])


@pytest.mark.parametrize("command", ["evaluate", "show"])
def test_what_is_no_run(tmp_path, capsys, command):
    assert "no such folder" in fails(capsys, [command, "absent"])
    assert "config.json" in fails(capsys, [command, str(tmp_path)])


@pytest.mark.second
def test_show_draws_again(copied, capsys):
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    for name in ("graph.svg", "report.html", "steps.html", "curves.svg", "filters.png"):
        (copied / name).unlink(missing_ok=True)
    assert main(["show", str(copied)]) == 0
    written = [line.removeprefix("wrote ") for line in capsys.readouterr().out.splitlines()]
    assert [Path(path).name for path in written] == [
        "graph.svg",
        "report.html",
        "steps.html",
        "curves.svg",
        "filters.png",
    ]
    assert all(Path(path).stat().st_size for path in written)


def test_without_matplotlib_the_training_still_ends_well(monkeypatch, capsys):
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.cm", "matplotlib.colors"):
        monkeypatch.setitem(sys.modules, name, None)
    assert main([*TRAIN, "--run", "run"]) == 0
    out = capsys.readouterr().out
    assert out.count("pip install -e '.[plot]'") == 1
    assert Path("run/graph.svg").exists() and not Path("run/curves.svg").exists()
    assert re.fullmatch(r"test accuracy 0\.\d{4}", out.splitlines()[-1])


# ---- failures while running -----------------------------------------------------------------


def test_a_training_that_diverges(capsys):
    assert "use a smaller learning rate" in fails(capsys, [*TRAIN, "--lr", "1e30"], code=1)


@pytest.mark.parametrize(
    "error, code, words",
    [
        (MemoryError("Unable to allocate 67 GiB"), 1, "not enough memory"),
        (OSError(errno.EIO, "Input/output error", "file"), 1, "file: Input/output error"),
    ],
)
def test_failures_of_the_machine(monkeypatch, capsys, error, code, words):
    def fail(*_):
        raise error

    monkeypatch.setattr(machine, "environment", fail)
    assert words in fails(capsys, ["doctor"], code)


def test_interrupt(monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(machine, "environment", interrupt)
    assert main(["doctor"]) == 130
    assert capsys.readouterr() == ("", "interrupted\n")


@pytest.mark.second
def test_a_reader_that_goes_away():
    """As in `tinygraph --help | head -1`: no traceback."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "tinygraph", "recipes"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, env=_env())
    os.close(write)
    assert done.returncode == 1 and done.stderr == ""


# ---- output ---------------------------------------------------------------------------------


def _env():
    root = str(Path(tinygraph.__file__).parents[1])
    return os.environ | {"PYTHONPATH": root, "NO_COLOR": "1"}


@pytest.mark.second
def test_a_whole_training_in_a_process_of_its_own(tmp_path):
    command = [
        sys.executable,
        "-m",
        "tinygraph",
        "train",
        "numba_cnn",
        "--epochs",
        "1",
        "--filters",
        "2",
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=_env())
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.splitlines()
    assert re.fullmatch(r"test accuracy [01]\.\d{4}", lines[-1])
    assert any(line.startswith("epoch 1/1  loss ") for line in lines)
    named = {line.removeprefix("wrote ") for line in lines if line.startswith("wrote ")}
    (run,) = (tmp_path / "runs").iterdir()
    files = {path for path in run.rglob("*") if path.is_file()}
    kept = {path for path in files if "checkpoints" not in path.parts}
    assert named == {str(path.relative_to(tmp_path)) for path in kept}
    assert {"config.json", "log.jsonl", "graph.svg"} <= {path.name for path in run.iterdir()}
    assert re.fullmatch(r"numba_cnn-\d{8}-\d{6}", run.name)
    assert "\x1b" not in done.stdout
    accuracy = json.loads((run / "result.json").read_text())["test"]["accuracy"]
    assert lines[-1] == f"test accuracy {accuracy:.4f}"


@pytest.mark.second
def test_train_json_is_one_object(capsys):
    assert main([*TRAIN, "--run", "run", "--json"]) == 0
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert err == "" and answer["run"] == "run" and 0 < answer["test"]["accuracy"] <= 1
    assert answer["epochs"] == RunFolder.open("run").rows()
    assert answer["files"] == [str(path) for path in RunFolder.open("run").files()]
    assert {"run/report.html", "run/best/parameters.safetensors"} <= set(answer["files"])


@pytest.mark.second
def test_json_of_the_other_commands(finished, capsys):
    for command, key in (["evaluate", "test"], ["show", "files"]):
        assert main([command, str(finished), "--json"]) == 0
        assert key in json.loads(capsys.readouterr().out)
    assert main(["recipes", "--json"]) == 0
    settings = {r["name"]: r["settings"] for r in json.loads(capsys.readouterr().out)["recipes"]}
    assert settings["numba_cnn"]["lr"] == 0.1


def test_errors_stay_off_stdout_with_json(capsys):
    assert main(["evaluate", "absent", "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ")


# ---- commands of other packages --------------------------------------------------------------


def installed(monkeypatch, name, value):
    """An entry point as another package would have it."""
    from importlib.metadata import EntryPoint

    from tinygraph.cli import arguments

    point = EntryPoint(name, value, "tinygraph.commands")
    monkeypatch.setattr(arguments, "entry_points", lambda group: [point])
    monkeypatch.setattr(arguments, "PARSERS", {**arguments.PARSERS})


def test_a_package_adds_a_command(monkeypatch, tmp_path, capsys):
    (tmp_path / "greeting.py").write_text(
        "from tinygraph.cli.arguments import Command\n"
        "def greet(args):\n    print('hello', args.name)\n    return {'ok': True}\n"
        "GREET = Command(greet, 'say hello', 'you', {'NAME': 'whom'})\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    installed(monkeypatch, "greet", "greeting:GREET")
    assert main(["greet", "you"]) == 0 and capsys.readouterr().out == "hello you\n"
    assert "did you mean '--json'" in fails(capsys, ["greet", "you", "--jsno"])


def test_a_command_whose_package_is_gone_is_none_and_a_broken_one_is_named(
    monkeypatch, tmp_path, capsys
):
    installed(monkeypatch, "gone", "package_that_is_gone.commands:GONE")
    assert main(["recipes"]) == 0
    assert "expected one of" in fails(capsys, ["gone"])
    (tmp_path / "broken_commands.py").write_text("1 / 0\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    installed(monkeypatch, "broken", "broken_commands:COMMAND")
    words = "broken: expected a command, got ZeroDivisionError: division by zero"
    assert f"{words}. Way out: install broken_commands again" in fails(capsys, ["recipes"])
