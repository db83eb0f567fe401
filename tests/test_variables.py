"""Environment variables: a number, or an error that names variable, expected and got."""

import os
import re
import subprocess
import sys

import pytest

from tests.rooms import FILES, ROOT
from tinygraph.base.errors import ArgumentError
from tinygraph.cuda.emulator import native

SOURCES = sorted([*FILES.values(), *ROOT.glob("course/exercises/*.py")])
PLACES = ["CACHE", "CUBINS", "CHECK", "DATA", "EMULATOR", "EXERCISES", "HOST_FILE"]
NUMBERS = [
    "COLLECTIVE_TIMEOUT",
    "CUDA_MEMORY_LIMIT",
    "EMULATOR_THREADS",
    "KEEP_MEMORY",
    "KERNEL_TIMEOUT",
]
BAD = ["", "²", "-3", "0", "1h", "1_0", "nan", "0x10", "9" * 5000, "1 2"]


@pytest.mark.parametrize("text", [*BAD, "1.5", "1025"])
def test_threads_of_the_emulator(text, monkeypatch):
    monkeypatch.setenv("TINYGRAPH_EMULATOR_THREADS", text)
    words = "emulator: TINYGRAPH_EMULATOR_THREADS: expected a whole number from 1 to 1024, got "
    with pytest.raises(ArgumentError, match=re.escape(words + repr(text)) + ".*unset"):
        native.threads()
    monkeypatch.setenv("TINYGRAPH_EMULATOR_THREADS", "3")
    assert native.threads() == 3
    monkeypatch.delenv("TINYGRAPH_EMULATOR_THREADS")
    assert native.threads() >= 1


@pytest.mark.parametrize("text", [*BAD[:8], BAD[-1], "inf", "-5"])
def test_seconds_of_a_kernel(text, monkeypatch):
    monkeypatch.setenv("TINYGRAPH_KERNEL_TIMEOUT", text)
    with pytest.raises(ArgumentError, match="TINYGRAPH_KERNEL_TIMEOUT: expected seconds above 0"):
        native.timeout()
    monkeypatch.setenv("TINYGRAPH_KERNEL_TIMEOUT", "1e-3")
    assert native.timeout() == 0.05  # less is no time to begin in
    monkeypatch.delenv("TINYGRAPH_KERNEL_TIMEOUT")
    assert native.timeout(2.5) == 2.5


def test_memory_that_is_kept_is_warned_of():
    """At import nothing is raised: a program would not begin."""
    variables = {**os.environ, "TINYGRAPH_KEEP_MEMORY": "9" * 5000}
    child = [sys.executable, "-W", "error::DeprecationWarning", "-c", "import tinygraph"]
    found = subprocess.run(child, env=variables, capture_output=True, text=True, encoding="utf-8")
    assert found.returncode == 0 and "expected a whole number of MB" in found.stderr


def test_each_variable_of_ours_is_known_here():
    """A new one that is a number goes through variables.py, and is tried with bad texts."""
    read = re.compile(r"""(?:environ(?:\.get)?[([]|VARIABLE = |FOLDER = )\s*"TINYGRAPH_(\w+)""")
    direct = {name for path in SOURCES for name in read.findall(path.read_text(encoding="utf-8"))}
    assert direct <= {*PLACES, "EMULATOR_THREADS", "KEEP_MEMORY", "REHEARSE_CUDA"}
    through = re.compile(r"""(?:count_of|seconds_of)\([^)]*"TINYGRAPH_(\w+)""")
    found = {name for path in SOURCES for name in through.findall(path.read_text(encoding="utf-8"))}
    assert found - {"OF_NO_ONE"} == {*NUMBERS} - {"KEEP_MEMORY"}
