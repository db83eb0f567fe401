"""What malloc keeps: page faults of steps, the bound, and who has the last word."""

import os
import subprocess
import sys

import pytest

import tinygraph as tg
from tinygraph.base import kept_memory

STEPS = """
import resource
import numpy as np
import tinygraph as tg

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def step(size):
    x = tg.Parameter(np.zeros(size, np.float32))
    tg.sum(tg.tanh(x * 2.0)).backward()

def of_steps(size):
    step(size)
    before = faults()
    for _ in range(20):
        step(size)
    return (faults() - before) / 20

print(of_steps(1 << 20), of_steps(20 << 20))
"""
GLIBC = pytest.mark.skipif(sys.platform != "linux", reason="glibc's malloc")


def run(**variables):
    """Page faults of a step on arrays of 4 MB and of 80 MB, in a new process."""
    without = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC", "TINYGRAPH_K"))}
    command = [sys.executable, "-W", "error", "-c", STEPS]
    done = subprocess.run(
        command, env=without | variables, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return [float(word) for word in done.stdout.split()]


@GLIBC
def test_a_step_has_few_page_faults():
    small, _ = run()
    assert small < 200
    left, _ = run(TINYGRAPH_KEEP_MEMORY="0")
    assert left > 1000  # 4 arrays of 1,024 pages


@GLIBC
def test_the_bound_holds():
    small, large = run(TINYGRAPH_KEEP_MEMORY="64")
    assert small < 200 and large > 1000  # 80 MB go back at once


@pytest.fixture
def set_of_malloc(monkeypatch):
    """What would be set, in the place of setting it for all other tests."""
    calls = []

    class Libc:
        @staticmethod
        def mallopt(parameter, value):
            calls.append((parameter, value))
            return 1

    monkeypatch.setattr(kept_memory.ctypes, "CDLL", lambda name: Libc)
    for name in (*kept_memory.OF_GLIBC, "GLIBC_TUNABLES", kept_memory.VARIABLE):
        monkeypatch.delenv(name, raising=False)
    return calls


@pytest.mark.parametrize(
    "text, sizes",
    [("", (256, 1024)), ("100", (100, 100)), (" 7 ", (7, 7)), ("9999", (256, 2048))],
)
def test_how_much(set_of_malloc, monkeypatch, text, sizes):
    """Of an array, and of all."""
    monkeypatch.setenv(kept_memory.VARIABLE, text)
    assert kept_memory.keep_memory()
    assert tuple([round(value / 2**20) for _, value in set_of_malloc]) == sizes


@pytest.mark.parametrize(
    "name, value",
    [
        ("TINYGRAPH_KEEP_MEMORY", "0"),
        ("MALLOC_TRIM_THRESHOLD_", "1000"),
        ("MALLOC_MMAP_THRESHOLD_", "1000"),
        ("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=128"),
    ],
)
def test_somebody_else_has_the_last_word(set_of_malloc, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert kept_memory.keep_memory() == 0 and not set_of_malloc


def test_another_libc_is_left_alone(monkeypatch):
    monkeypatch.setattr(kept_memory.ctypes, "CDLL", lambda name: object())
    monkeypatch.delenv(kept_memory.VARIABLE, raising=False)
    assert kept_memory.keep_memory() == 0


@pytest.mark.parametrize("text", ["much", "-1", "1.5"])
def test_what_is_no_number_is_said(set_of_malloc, monkeypatch, text):
    monkeypatch.setenv(kept_memory.VARIABLE, text)
    with pytest.warns(UserWarning, match="TINYGRAPH_KEEP_MEMORY: expected a whole number of MB"):
        assert kept_memory.keep_memory() == kept_memory.MOST
    assert tg.zeros(2).shape == (2,)
