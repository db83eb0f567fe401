"""`tinygraph doctor`: what it prints about this machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tinygraph
from tests.distributed.launch import launch, needs_mpi
from tinygraph.base.errors import KernelCompileError
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


def test_without_a_compiler_warm_says_why(monkeypatch, capsys):
    def none(*arguments):
        raise KernelCompileError("emulator: no C++ compiler")

    monkeypatch.setattr(machine, "Kernel", none)
    assert machine.warmed() is None
    assert "emulator   not available: emulator: no C++ compiler" in capsys.readouterr().out


@pytest.mark.second
def test_after_warm_a_kernel_is_all_that_is_compiled(tmp_path):
    """In a cache of its own: what the second process adds is one library for each kind of build."""
    environment = {**os.environ, "TINYGRAPH_CACHE": str(tmp_path)}
    command = [sys.executable, "-m", "tinygraph", "doctor", "--warm", "--json"]
    out = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert json.loads(out.stdout)["warm"] > 0

    def built():
        return {path.name for path in tmp_path.iterdir() if path.suffix in (".so", ".gch")}

    before = built()
    assert before
    text = (
        "import numpy as np\nfrom tinygraph.cuda import Kernel\n"
        "kernel = Kernel('__global__ void two(int* y) { y[threadIdx.x] = 2; }', 'two')\n"
        "y = np.zeros(4, np.int32)\n"
        "kernel(1, 4, y)\nkernel.check(1, 4, y)\nkernel.check(1, 4, y, trace=True)"
    )
    subprocess.run([sys.executable, "-c", text], env=environment, check=True)
    added = built() - before
    assert len(added) == 3 and {Path(name).suffix for name in added} == {".so"}


# ---- MPI ----------------------------------------------------------------------------------------


@needs_mpi
@pytest.mark.second
def test_doctor_under_a_launcher_counts_ranks_and_cores():
    """One rank more than there are cores: a warning, which is printed once."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    ended = launch("from tinygraph.cli import main; main(['doctor'])", cores + 1, limit=200)
    assert ended.code == 0, ended.err
    assert f"ranks      {cores + 1}, by MPI; {cores / (cores + 1):g} cores for each" in ended.out
    assert ended.out.count(f"warning: more ranks than cores: {cores + 1} on {cores} of ") == 1


def doctored(monkeypatch, capsys, library, said):
    """What doctor prints of MPI, where mpi4py's library and mpiexec say this of themselves."""

    def output(command):
        return said if command[-1] == "--version" else library

    monkeypatch.setattr(machine, "_output", output)
    monkeypatch.setattr(machine, "_device", lambda name: "available")
    monkeypatch.setattr(machine, "find_spec", lambda name: object())
    monkeypatch.setattr("shutil.which", lambda name, path=None: said and f"/bin/{name}")
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)  # it has a warning of its own
    assert main(["doctor"]) == 0
    return capsys.readouterr().out


MPICH, OPEN_MPI = "MPICH\nMPICH Version:   5.0.2\n", "Open MPI\nOpen MPI v5.0.8, package: x\n"
HYDRA, ORTE = "HYDRA build details:\n    Version: 5.0.2", "mpiexec (OpenRTE) 4.1.4"


@pytest.mark.parametrize(
    ("library", "said", "words"),
    [
        (MPICH, HYDRA, "mpi        MPICH Version: 5.0.2\nmpiexec    /bin/mpiexec of MPICH\n"),
        (OPEN_MPI, ORTE, "mpiexec    /bin/mpiexec of Open MPI\nranks      one process"),
        (MPICH, ORTE, "warning: mpi4py has MPICH, and /bin/mpiexec is that of Open MPI: pip"),
        (OPEN_MPI, HYDRA, "warning: mpi4py has Open MPI, and /bin/mpiexec is that of MPICH: pip"),
        (MPICH, "", "warning: there is no mpiexec beside this Python nor on the PATH"),
        ("", HYDRA, "mpi        mpi4py finds no library of MPI"),
    ],
)
def test_doctor_says_whose_mpi_there_is(monkeypatch, capsys, library, said, words):
    out = doctored(monkeypatch, capsys, library, said)
    assert words in out
    assert ("warning" in words) == ("warning: " in out)
