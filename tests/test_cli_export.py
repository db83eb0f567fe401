"""`tinygraph export`: the network of a run as an ONNX file, and what is refused."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.onnx import runtimes
from tests.test_cli import fails
from tinygraph import recipes
from tinygraph.cli import main
from tinygraph.interop.onnx import comparing
from tinygraph.training import RunFolder


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A network that has seen the digits once."""
    path = tmp_path_factory.mktemp("export") / "run"
    arguments = ["train", "numba_cnn", "--filters", "1", "--epochs", "1", "--run", str(path)]
    assert main(arguments) == 0
    return path


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TINYGRAPH_DATA", raising=False)


@pytest.mark.parametrize("best", [False, True])
def test_the_network_of_a_run(capsys, run, best):
    assert main(["export", str(run), "cnn.onnx", *["--best"] * best]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("wrote cnn.onnx: 5 operators, ")
    assert lines[1:3] == ["input images (N, 1, 8, 8) float32", "output output (N, 10) float32"]
    assert lines[3].startswith("compared with onnxruntime ") and len(lines) == 4
    opened = RunFolder.open(run)
    network = recipes.get("numba_cnn").trained(opened, best).eval()
    x = np.random.default_rng(2).normal(size=(4, 1, 8, 8)).astype(np.float32)
    runtimes.close(runtimes.by_onnxruntime(Path("cnn.onnx"), x)[0], network(x).numpy())


def test_json_says_what_goes_in_and_out(capsys, run):
    assert main(["export", str(run), "cnn.onnx", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] and found["recipe"] == "numba_cnn" and found["file"] == "cnn.onnx"
    assert found["inputs"] == [{"name": "images", "shape": ["N", 1, 8, 8], "dtype": "float32"}]
    assert found["outputs"] == [{"name": "output", "shape": ["N", 10], "dtype": "float32"}]
    assert found["compared"]["samples"] == [1, 3] and found["compared"]["difference"] < 1e-5


def test_a_file_that_gives_something_else_is_a_failure(capsys, monkeypatch, run):
    monkeypatch.setattr(comparing, "no_grad", lambda: Shifted())
    monkeypatch.setattr(comparing, "named_tensors", lambda y, _: [("y", y + 0.01)])
    assert main(["export", str(run), "cnn.onnx"]) == 1
    assert "largest difference 1.0e-02" in capsys.readouterr().out


class Shifted:
    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None


def test_without_onnxruntime_nothing_is_compared(capsys, monkeypatch, run):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert main(["export", str(run), "cnn.onnx"]) == 0
    assert "not compared: pip install onnxruntime" in capsys.readouterr().out
    assert Path("cnn.onnx").exists()


def test_without_the_package_the_extra_is_named(capsys, monkeypatch, run):
    for name in [n for n in sys.modules if n.split(".")[0] == "onnx"]:
        monkeypatch.delitem(sys.modules, name)
    for name in [n for n in sys.modules if n.startswith("tinygraph.interop.onnx.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(vars(sys.modules["tinygraph.interop.onnx"]), "save", raising=False)
    monkeypatch.setitem(sys.modules, "onnx", None)
    words = fails(capsys, ["export", str(run), "cnn.onnx"], 1)
    assert "expected the package onnx" in words and "pip install -e '.[onnx]'" in words
    assert not Path("cnn.onnx").exists()


def test_what_is_refused(capsys, run, tmp_path):
    Path("there.onnx").write_text("mine")
    words = fails(capsys, ["export", str(run), "there.onnx"])
    assert "expected a new file" in words and Path("there.onnx").read_text() == "mine"
    assert "no such folder" in fails(capsys, ["export", "nowhere", "cnn.onnx"])
    assert "config.json" in fails(capsys, ["export", str(tmp_path), "cnn.onnx"])
    assert "a place for a file" in fails(capsys, ["export", str(run), "no/cnn.onnx"], 1)
    assert "FILE" in fails(capsys, ["export", str(run)])
    assert main(["train", "perceptron", "--run", "quick"]) == 0
    capsys.readouterr()
    assert "--best" in fails(capsys, ["export", "quick", "cnn.onnx", "--best"])


def test_a_network_without_validation(capsys):
    assert main(["train", "perceptron", "--run", "quick"]) == 0
    capsys.readouterr()
    assert main(["export", "quick", "neuron.onnx"]) == 0
    assert "input x (N, 3) float64" in capsys.readouterr().out
