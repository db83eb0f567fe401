"""Undefined values on a machine without clang: what is used is found, the rest is not."""

import shutil

import numpy as np
import pytest

from tinygraph.cuda import InOut, Kernel
from tinygraph.cuda.emulator import checker

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="there is no g++")
HEAD = "__global__ void k(const float* x, float* y, int n) { // trial\nconst int t = threadIdx.x;\n"
SUM = "float v = x[t];\nfor (int o = 8; o > 0; o /= 2) v += __shfl_down_sync(0xfffu, v, o);\n"


@pytest.fixture(autouse=True)
def without_clang(monkeypatch):
    monkeypatch.setattr(checker, "find_follower", lambda: None)
    monkeypatch.setenv("CXX", "g++")


def findings_of(body):
    x, y = np.arange(1, 33, dtype=np.float32), np.zeros(32, np.float32)
    report = Kernel(f"{HEAD}{body}\n}}", "k").check(1, 12, x, InOut(y), 12)
    return [(f.kind, f.line) for f in report.findings]


@pytest.mark.parametrize(
    "body, found",
    [
        (SUM + "if (t == 0) y[0] = v;", [("warp-sync", 4)]),
        (SUM + "(void)v; y[t] = 1;", []),
        ("float v = __shfl_down_sync(0xfffu, x[t], 4);\nif (t < 8) y[t] = v;", []),
        ("int v = __shfl_down_sync(0xfffu, t, 4);\nif (v < 0) y[t] = 1;", [("warp-sync", 3)]),
        ("float s;\nfor (int i = 0; i < 4; i++) s += x[i];\ny[t] = s;", [("uninitialized", 4)]),
        ("float sum;\nsum = 0;\nfor (int i = 0; i < 4; i++) sum += x[i];\ny[t] = sum;", []),
    ],
)  # fmt: skip
def test_what_is_found_without_clang(body, found):
    assert findings_of(body) == found


def test_the_words_of_the_compiler_and_of_a_trial():
    x, y = np.ones(32, np.float32), np.zeros(32, np.float32)
    local = Kernel(f"{HEAD}float sum;\ny[t] = sum + x[t];\n}}", "k").check(1, 4, x, InOut(y), 4)
    assert "k: g++ says: 'sum' is used uninitialized" in local.findings[0].message
    lanes = Kernel(f"{HEAD}{SUM}y[t] = v;\n}}", "k").check(1, 12, x, InOut(y), 12)
    assert "what the launch leaves behind depends on it" in lanes.findings[0].message
