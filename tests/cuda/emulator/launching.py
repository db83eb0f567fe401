"""Short ways to launch a kernel that stands in a test."""

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import tinygraph
from tinygraph.cuda import Kernel

ROOT = Path(tinygraph.__file__).parents[1]
MARK = "// <-"


@cache
def kernel(text, name=None, **defines):
    """The Kernel of a text: its last `__global__` function, if none is named."""
    names = re.findall(r"__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)", text)
    return Kernel(text, name or names[-1], defines)


def run(text, grid, block, *args, shared=0):
    """A plain launch."""
    kernel(text)(grid, block, *args, shared=shared)


def check(text, grid, block, *args, shared=0, profile=False):
    """A launch under the checker: its report."""
    return kernel(text).check(grid, block, *args, shared=shared, profile=profile)


def clean(text, grid, block, *args, shared=0):
    """A launch under the checker that must find nothing."""
    report = check(text, grid, block, *args, shared=shared)
    assert report.ok, report.text()


def marked(text):
    """The numbers of the lines that end in `// <-`."""
    return {n for n, line in enumerate(text.splitlines(), 1) if line.rstrip().endswith(MARK)}


def assert_found(report, kind, text):
    """Findings of this kind only, one of them at a marked line."""
    assert {finding.kind for finding in report.findings} == {kind}, report.text()
    assert {finding.line for finding in report.findings} & marked(text), report.text()


def in_child(code, seconds=60, **environment):
    """Run Python code in a process of its own; the process, which may have died."""
    return subprocess.run(
        [sys.executable, "-c", PREAMBLE + code],
        capture_output=True,
        text=True,
        timeout=seconds,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        cwd=ROOT,
    )


def assert_alive(child, *words):
    """The child came to its end and said these words."""
    assert child.returncode == 0, f"exit status {child.returncode}\n{child.stdout}\n{child.stderr}"
    for word in words:
        assert word in child.stdout, child.stdout


PREAMBLE = """
import os, signal, sys, threading, time
import numpy as np
from tests.cuda.emulator.launching import check, clean, kernel, run

RIGHT = "__global__ void right(float* y, int n) {\\n" \\
        "    int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = i; }"

def launch_right():
    y = np.zeros(10000, np.float32)
    run(RIGHT, 40, 256, y, y.size)
    assert (y == np.arange(y.size)).all()

"""
