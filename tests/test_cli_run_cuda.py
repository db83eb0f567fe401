"""The options of `tinygraph run-cuda`, its exit status, and its errors."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tinygraph.cli import main
from tinygraph.cli.run_cuda import own_options_first
from tinygraph.cuda.emulator.findings import Finding, Report
from tinygraph.cuda.emulator.host import building, program

ROOT = Path(__file__).parents[1]


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """What the command asks for; `.answer` is what came of the run."""

    class Asked:
        answer = program.ProgramRun(0)

    def build(sources, checked):
        Asked.sources, Asked.checked = sources, checked
        return "built"

    def run(built, arguments, timeout, stdout=None):
        Asked.arguments, Asked.timeout = arguments, timeout
        return Asked.answer

    monkeypatch.setattr(building, "build", build)
    monkeypatch.setattr(program, "run", run)
    monkeypatch.chdir(tmp_path)
    for name in ("a.cu", "b.cpp"):
        (tmp_path / name).write_text("int main() {}\n")
    return Asked


def test_options_stand_before_or_behind_the_file(asked, tmp_path):
    (tmp_path / "inc").mkdir()
    words = ["--define", "N=3", "a.cu", "5", "-n", "--no-check", "--with", "b.cpp"]
    assert main(["run-cuda", *words, "--include", "inc", "--timeout=2", "--", "--json"]) == 0
    assert asked.arguments == ["5", "-n", "--json"] and asked.timeout == 2
    assert [s.name for s in asked.sources] == ["a.cu", "b.cpp"] and not asked.checked
    assert asked.sources[0].defines == (("N", "3"),)
    assert asked.sources[0].folders == ((tmp_path / "inc").resolve(),)


def test_an_option_without_a_value_is_left_to_the_parser():
    assert own_options_first(["a.cu", "--timeout"]) == ["--timeout", "a.cu"]


@pytest.mark.parametrize(
    ("status", "reports", "code"), [(0, [], 0), (7, [], 7), (0, ["k"], 1), (139, ["k"], 139)]
)
def test_the_exit_status_is_the_programs(asked, capsys, status, reports, code):
    found = [Report(name, [Finding("race", "two threads")]) for name in reports]
    asked.answer = program.ProgramRun(status, found, ["a note"])
    assert main(["run-cuda", "a.cu"]) == code
    _, err = capsys.readouterr()
    assert "a note" in err and ("two threads" in err) == bool(reports)
    assert main(["run-cuda", "a.cu", "--json"]) == code
    answer = json.loads(capsys.readouterr().out)
    assert answer["program_status"] == status and len(answer["reports"]) == len(reports)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["absent.cu"], "'absent.cu'"),
        (["a.cu", "--include", "nowhere"], "--include"),
        (["a.cu", "--timeout", "0"], "at least 0.01"),
        ([], "FILE"),
        (["--no-chek", "a.cu"], "'--no-chek'"),
    ],
)
def test_errors_are_one_line(asked, capsys, words, told):
    assert main(["run-cuda", *words]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.second
def test_a_program_is_run_and_its_json_stands_alone(tmp_path):
    text = """#include <cstdio>
__global__ void k(int *x, int n) { if (threadIdx.x <= n) x[threadIdx.x] = n; }
int main(int argc, char **argv) {
    int *d_x;
    cudaMalloc(&d_x, 31 * sizeof(int));
    k<<<1, 32>>>(d_x, 30 + argc);
    printf("%s %s\\n", argv[argc - 1], cudaGetErrorName(cudaDeviceSynchronize()));
    return 3;
}
"""
    (tmp_path / "a.cu").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "tinygraph", "run-cuda", "a.cu", "word", "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 3 and "word cudaErrorIllegalAddress\n" in done.stderr
    (report,) = json.loads(done.stdout)["reports"]
    (finding,) = report["findings"]
    assert (finding["array"], finding["index"], finding["line"]) == ("d_x", 31, 2)


@pytest.mark.second
def test_what_does_not_compile(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.cu").write_text('#include "absent.h"\nint main() {}\n')
    assert main(["run-cuda", "a.cu"]) == 2
    assert "a.cu:1: absent.h: no such header here" in capsys.readouterr().err
    (tmp_path / "a.cu").write_text("int main() {\n    return missing;\n}\n")
    assert main(["run-cuda", "a.cu"]) == 2
    assert "a.cu:2" in (err := capsys.readouterr().err) and "return missing;" in err
