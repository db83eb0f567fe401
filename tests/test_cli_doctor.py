"""`tinygraph doctor`: what it prints about this machine."""

import json

import numpy as np
import pytest

import tinygraph
from tinygraph.cli import machine, main
from tinygraph.cuda.emulator import compiler


@pytest.mark.second
def test_doctor(monkeypatch, capsys):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    for part in (
        np.__version__,
        tinygraph.__version__,
        "blas ",
        "cpu        available",
        "cuda ",
        "emulator ",
        "compiler ",
        "warning: OPENBLAS_CORETYPE=Haswell",
    ):
        assert part in out
    assert sum("warning" in line for line in out.splitlines()) == 1
    monkeypatch.delenv("OPENBLAS_CORETYPE")
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["warnings"] == [] and found["devices"]["cpu"] == "available"
    assert found["numpy"] == np.__version__


@pytest.mark.parametrize("wheel, extra", [("cupy-cuda12x", "cuda12"), ("cupy-cuda13x", "cuda13")])
def test_doctor_names_the_extra_of_the_cupy_that_is_there(monkeypatch, capsys, wheel, extra):
    monkeypatch.setattr("importlib.metadata.packages_distributions", lambda: {"cupy": [wheel]})
    assert main(["doctor"]) == 0
    assert f"\n[{extra}]" in capsys.readouterr().out


def test_doctor_names_the_pip_line_of_what_is_absent(monkeypatch, capsys):
    monkeypatch.setattr(machine, "find_spec", lambda name: None)
    monkeypatch.setattr("shutil.which", lambda name, path=None: None)
    compiler._find.cache_clear()  # what this process has found before
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "sklearn absent" in out and "pip install -e '.[data]'" in out
    assert "no C++ compiler found" in out
