"""`make kernels`: the table of kernels, and what their main loops must keep to."""

import re
from pathlib import Path

import pytest

from benchmarks.kernels import main
from benchmarks.machine_code import disassembly
from tests.cuda.test_nvrtc import SPILLING
from tests.test_cli_kernels import BROKEN, SCALE
from tinygraph.cuda.nvrtc import library

DOT = """// main loop of dot: at least SHARE FFMA, at least 4 bytes a load
__global__ void dot(const float* a, const float* b, float* y, int n)
{
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < n; ++i) sum += a[i] * b[i];
    *y = sum;
}
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TINYGRAPH_CACHE", str(tmp_path / "cache"))
    for name, text in (("scale", SCALE), ("broken", BROKEN), ("spilling", SPILLING)):
        Path(f"{name}.cu").write_text(text)


def run(capsys, *arguments):
    """Exit code, stdout, stderr."""
    return (main([*arguments, "--arch", "sm_90"]), *capsys.readouterr())


@pytest.mark.second
def test_the_main_loop_of_a_kernel_that_has_one(capsys):
    Path("dot.cu").write_text(DOT.replace("SHARE", "0.05"))
    code, out, err = run(capsys, "dot.cu", "scale.cu")
    assert code == 0 and err == "" and "spills: 0\n" in out
    table = out[out.index("main loop") :].splitlines()
    assert table[0].split() == [
        "main", "loop", "instructions", "multiply-adds", "bytes/load", "divisions", "local",
    ]  # fmt: skip
    assert table[1] == "dot.cu" and re.fullmatch(
        r"  dot +\d+ +FFMA +\d+\.\d% +4\.0 +0 +0", table[2]
    )
    assert "scale.cu" not in table  # has no loop
    assert table[3:] == ["main loops with bounds: 1, not kept: 0"]


@pytest.mark.second
def test_a_bound_that_is_not_kept_fails(capsys):
    Path("dot.cu").write_text(DOT.replace("SHARE", "0.9"))
    code, out, err = run(capsys, "dot.cu")
    assert code == 1 and "main loops with bounds: 1, not kept: 1" in out
    assert re.search(r"dot\.cu: dot, sm_90: main loop: expected at least 0\.9 FFMA, got 0\.", err)
    assert "bytes a load, got" not in err and "Way out" in err
    assert main(["dot.cu", "--arch", "sm_80"]) == 0  # for which nothing was stated


@pytest.mark.second
@pytest.mark.parametrize(
    "file, words", [("spilling.cu", "wide, sm_90: spills"), ("broken.cu", "*x = missing;")]
)
def test_what_spills_or_does_not_compile_fails(capsys, file, words):
    code, out, err = run(capsys, file, "scale.cu")
    assert code == 1 and words in err and "scale<float>" in out


def test_without_a_disassembler_only_bounds_fail(capsys, monkeypatch):
    Path("dot.cu").write_text(DOT.replace("SHARE", "0.05"))
    disassembly.version.cache_clear()
    monkeypatch.setattr(disassembly, "candidates", lambda: iter([]))
    code, out, err = run(capsys, "scale.cu")
    assert code == 0 and err == "" and "not looked at, there is no nvdisasm" in out
    code, _, err = run(capsys, "dot.cu")
    assert code == 1 and "bounds in 1 kernels" in err and "pip install nvidia-cuda-nvdisasm" in err


def test_what_is_not_there_is_told(capsys, monkeypatch):
    code, _, err = run(capsys, "absent.cu")
    assert code == 2 and "correct the path" in err
    monkeypatch.setattr(library, "candidates", lambda: iter([]))
    library.library.cache_clear()
    code, _, err = run(capsys, "scale.cu")
    library.library.cache_clear()
    assert code == 1 and "pip install nvidia-cuda-nvrtc" in err and err.count("\n") == 1
