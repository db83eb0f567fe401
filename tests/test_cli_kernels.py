"""The commands about kernels: what they print, what --json holds, and their exit codes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cuda.test_nvrtc import SPILLING
from tinygraph.cli import kernels, main
from tinygraph.cuda import nvrtc
from tinygraph.cuda.emulator.findings import Finding, LineCounts, Report
from tinygraph.cuda.nvrtc import library
from tinygraph.cuda.nvrtc.compiling import ARCHITECTURES
from tinygraph.cuda.reading.instances import inventory

ROOT = Path(__file__).parents[1]
SCALE = """// instances (FACTOR=2): scale<float>, scale<double>
template <typename T>
__global__ void __launch_bounds__(128) scale(const T* x, T* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = FACTOR * x[i];
}
"""
BROKEN = "__global__ void broken(float* x)\n{\n    *x = missing;\n}\n"
CHECK = [
    "check-kernel",
    "scale.cu",
    "--kernel",
    "scale<float>",
    "--define",
    "FACTOR=3",
    "--grid",
    "8",
    "--block",
    "128",
    "--arg",
    "x=rng.random(1000)",
]
ARGUMENTS = ["--arg", "y=empty(1000)", "--arg", "n=1000"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Files are written to a folder of the test, as is the cache."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TINYGRAPH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "scale.cu").write_text(SCALE)
    (tmp_path / "broken.cu").write_text(BROKEN)
    (tmp_path / "spilling.cu").write_text(SPILLING)


def run(capsys, *arguments):
    """Exit code, stdout, stderr."""
    code = main(list(arguments))
    return (code, *capsys.readouterr())


# ---- kernels --------------------------------------------------------------------------------


@pytest.mark.second
def test_one_line_for_a_kernel_with_its_worst_architecture(capsys):
    code, out, err = run(capsys, "kernels", "scale.cu")
    assert code == 0 and err == ""
    head, file, *rows, last = out.splitlines()
    assert head.split() == [
        "kernel",
        "arch",
        "registers",
        "spills",
        "shared",
        "threads",
        "occupancy",
    ]
    assert file == "scale.cu" and len(rows) == 2
    for row, dtype in zip(rows, ("float", "double"), strict=True):
        pattern = rf"  scale<{dtype}> FACTOR=2 +sm_\d+ +\d+ +0 +0 +128 +\d+%"
        assert re.fullmatch(pattern, row), row
    assert last == (
        f"kernels: 2, architectures: {', '.join(ARCHITECTURES)}, "
        f"NVRTC {nvrtc.version()}; compile errors: 0, spills: 0"
    )


@pytest.mark.second
@pytest.mark.parametrize("arch, archs", [("sm_80", ["sm_80"]), ("all", list(ARCHITECTURES))])
def test_the_architectures_asked_for(capsys, arch, archs):
    code, out, _ = run(capsys, "kernels", "scale.cu", "--arch", arch)
    assert code == 0
    assert re.findall(r"^  scale<double> .* (sm_\d+) ", out, re.MULTILINE) == archs


@pytest.mark.second
def test_json_has_every_architecture(capsys):
    code, out, _ = run(capsys, "kernels", "scale.cu", "--json")
    answer = json.loads(out)
    assert code == 0 and answer["ok"] and answer["errors"] == []
    assert [kernel["kernel"] for kernel in answer["kernels"]] == ["scale<float>", "scale<double>"]
    for kernel in answer["kernels"]:
        assert kernel["file"] == "scale.cu" and kernel["defines"] == {"FACTOR": "2"}
        assert [found["arch"] for found in kernel["resources"]] == list(ARCHITECTURES)
        assert all(found["max_threads"] == 128 for found in kernel["resources"])
        assert all(0 < found["occupancy"]["share"] <= 1 for found in kernel["resources"])


@pytest.mark.second
def test_a_spill_fails(capsys):
    code, out, err = run(capsys, "kernels", "scale.cu", "spilling.cu", "--arch", "sm_90")
    assert code == 1
    assert re.search(r"^error: spilling\.cu: wide, sm_90: spills [1-9]\d* bytes", err)
    assert "Way out" in err and "spills: 1" in out.splitlines()[-1]
    assert run(capsys, "kernels", "scale.cu", "--arch", "sm_90")[0] == 0


@pytest.mark.second
def test_the_worst_architecture_is_the_one_that_spills(capsys, monkeypatch):
    honest = nvrtc.resources_of_all

    def spill_on_80(source, names, arch):
        found = honest(source, names, arch)
        spilling = [type(one)(**{**vars(one), "spill_loads": 12}) for one in found]
        return found if arch != "sm_80" else spilling

    monkeypatch.setattr(nvrtc, "resources_of_all", spill_on_80)
    code, out, _ = run(capsys, "kernels", "scale.cu")
    assert code == 1 and re.search(r"scale<float> FACTOR=2 +sm_80 +\d+ +12 ", out)


@pytest.mark.second
def test_a_kernel_that_does_not_compile_fails_and_the_others_are_shown(capsys):
    code, out, err = run(capsys, "kernels", "broken.cu", "scale.cu", "--arch", "sm_75")
    assert code == 1
    assert "broken.cu:3" in err and "*x = missing;" in err and "error: broken.cu" in err
    assert re.search(r"^  broken +does not compile$", out, re.MULTILINE)
    assert re.search(r"^  scale<float> FACTOR=2 +sm_75", out, re.MULTILINE)
    code, out, _ = run(capsys, "kernels", "broken.cu", "--arch", "sm_75", "--json")
    answer = json.loads(out)
    assert code == 1 and not answer["ok"] and "missing" in answer["errors"][0]


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["absent.cu"], "got 'absent.cu'. Way out: correct the path"),
        (["--arch", "sm90"], "did you mean 'sm_90'"),
        (["--arch", "hopper"], "expected one of sm_75"),
        (["--arhc", "sm_90"], "did you mean '--arch'"),
    ],
)
def test_bad_usage_of_kernels(capsys, arguments, words):
    code, _, err = run(capsys, "kernels", *arguments)
    assert code == 2 and words in err and err.startswith("error: ")


def test_a_file_of_templates_without_instances(capsys, tmp_path):
    text = SCALE.partition("\n")[2].replace("<typename T>", "<typename T, int N>")
    (tmp_path / "scale.cu").write_text(text)
    code, _, err = run(capsys, "kernels", "scale.cu")
    assert code == 2 and "instances: NAME<float>" in err


def test_without_nvrtc(capsys, monkeypatch):
    monkeypatch.setattr(library, "candidates", lambda: iter([]))
    library.library.cache_clear()
    code, _, err = run(capsys, "kernels", "scale.cu")
    library.library.cache_clear()
    assert code == 1 and "pip install nvidia-cuda-nvrtc" in err and err.count("\n") == 1


@pytest.mark.second
def test_several_processes_give_the_same_numbers(monkeypatch):
    """Many compilations go to other processes; few stay in this one."""
    instances = inventory(["scale.cu"])
    here = kernels._compiled(instances, ARCHITECTURES, None)
    monkeypatch.setattr(kernels, "FEW", 1)
    monkeypatch.setenv("TINYGRAPH_CACHE", "another-cache")
    assert kernels._compiled(instances, ARCHITECTURES, None) == here
    broken = inventory(["broken.cu"])
    assert all(
        "missing" in str(error) for error in kernels._compiled(broken, ARCHITECTURES, None)[0]
    )


# ---- check-kernel ---------------------------------------------------------------------------


FINDING = Finding(
    "out-of-bounds",
    "y[1000] is past the end",
    "scale.cu",
    6,
    "y[i] = x[i];",
    "y",
    1000,
    (7, 0, 0),
    (104, 0, 0),
)


@pytest.fixture
def checked(monkeypatch):
    """A checker that finds what the test puts into the list, and notes how it was called."""

    class Checker(list):
        calls = []

    findings = Checker()

    def check(kernel, grid, block, *arguments, shared, profile, arch, timeout):
        findings.calls.append((kernel, grid, block, arguments, shared, profile))
        line = LineCounts("scale.cu", 6, "y[i] = x[i];", "global", "load", 4, 32, 128, 128)
        return Report(kernel.name, list(findings), [line] if profile else [])

    monkeypatch.setattr("tinygraph.cuda.kernel.Kernel.check", check)
    findings.calls.clear()
    return findings


def test_a_clean_launch(capsys, checked):
    code, out, err = run(capsys, *CHECK, *ARGUMENTS, "--shared", "16")
    assert (code, err) == (0, "") and out == "scale<float>: clean\n"
    [(kernel, grid, block, (x, y, n), shared, profile)] = checked.calls
    assert kernel.source.defines == (("FACTOR", "3"),)
    assert (grid, block, x.shape, y.array.shape, n) == ((8,), (128,), (1000,), (1000,), 1000)
    assert (shared, profile) == (16, False)


def test_findings_give_exit_code_1(capsys, checked):
    checked.append(FINDING)
    code, out, _ = run(capsys, *CHECK, *ARGUMENTS)
    assert code == 1 and "out-of-bounds" in out and "scale.cu:6" in out and "\x1b" not in out


def test_findings_as_json(capsys, checked):
    checked.append(FINDING)
    code, out, err = run(capsys, *CHECK, *ARGUMENTS, "--json", "--profile")
    answer = json.loads(out)
    assert code == 1 and err == "" and not answer["ok"]
    assert answer["findings"][0]["kind"] == "out-of-bounds"
    assert answer["findings"][0]["thread"] == [104, 0, 0]
    assert answer["lines"][0]["sectors_per_request"] == 4


@pytest.mark.parametrize(
    "terminal, no_color, coloured",
    [(True, None, True), (True, "", True), (True, "1", False), (False, None, False)],
)
def test_colour_only_on_a_terminal(capsys, checked, monkeypatch, terminal, no_color, coloured):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    _, out, _ = run(capsys, *CHECK, *ARGUMENTS)
    assert ("\x1b[" in out) is coloured


@pytest.mark.parametrize(
    "arguments, words",
    [
        (CHECK, "missing y, n"),
        ([*CHECK, *ARGUMENTS, "--arg", "m=3"], "unknown m"),
        ([*CHECK, *ARGUMENTS, "--arg", "m"], "--arg: expected NAME=VALUE, or NAME:in=VALUE"),
        ([*CHECK[:2], *CHECK[4:], *ARGUMENTS], "scale<...>"),
        (["check-kernel", "absent.cu", *CHECK[2:], *ARGUMENTS], "absent.cu"),
        ([*CHECK, *ARGUMENTS, "--kernel", "scael<float>"], "did you mean 'scale'"),
        ([*CHECK, *ARGUMENTS, "--grid", "none"], "--grid: expected one to three whole numbers"),
        ([*CHECK, *ARGUMENTS, "--sharde", "3"], "did you mean '--shared'"),
        (CHECK[:2], "--grid"),
        (["check-kernel"], "FILE"),
    ],
)
def test_bad_usage_of_check_kernel(capsys, arguments, words):
    code, out, err = run(capsys, *arguments)
    assert code == 2 and out == "" and err.startswith("error: ") and words in err


@pytest.mark.parametrize(
    "changed, words",
    [
        (["--grid", "0"], "grid"),
        (["--block", "2000"], "block"),
        (["--block", "256"], "128"),
        (["--shared", "999999"], "shared"),
        (["--arg", "n=0.5"], "int"),
    ],
)
def test_launches_that_do_not_fit_the_kernel(capsys, changed, words):
    arguments = ARGUMENTS[:2] if changed[0] == "--arg" else ARGUMENTS
    code, _, err = run(capsys, *CHECK, *arguments, *changed)
    assert code == 2 and words in err and err.startswith("error: scale<float>")


# ---- with the emulator ----------------------------------------------------------------------


def test_the_real_checker_on_a_right_and_a_wrong_launch(capsys):
    code, out, err = run(capsys, *CHECK, *ARGUMENTS)
    assert (code, err) == (0, ""), out + err
    short = ["--arg", "y=empty(1000)", "--arg", "n=1001"]
    code, out, _ = run(capsys, *CHECK, *short)
    assert code == 1 and "out-of-bounds" in out and "scale.cu:6" in out
    short = ["--arg", "y=empty(1001)", "--arg", "n=1000"]
    code, out, _ = run(capsys, *CHECK, *short, "--json")
    assert code == 1 and json.loads(out)["findings"][0]["kind"] == "unwritten-output"


def test_the_real_checker_refuses_what_does_not_compile(capsys):
    code, _, err = run(
        capsys,
        "check-kernel",
        "broken.cu",
        "--grid",
        "1",
        "--block",
        "1",
        "--arg",
        "x=empty(1)",
    )
    assert code == 2 and "broken.cu:3" in err and "*x = missing;" in err


@pytest.mark.second
def test_json_stays_alone_on_stdout_when_a_kernel_prints(tmp_path):
    text = '__global__ void loud(int* x)\n{\n    printf("value %d\\n", 41);\n    *x = 41;\n}\n'
    (tmp_path / "loud.cu").write_text(text)
    command = [
        sys.executable,
        "-m",
        "tinygraph",
        "check-kernel",
        "loud.cu",
        "--grid",
        "1",
        "--block",
        "1",
        "--arg",
        "x=empty(1)",
        "--json",
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert json.loads(done.stdout)["ok"] and done.stderr == "value 41\n", done.stderr
