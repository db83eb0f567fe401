"""`import tinygraph` loads what a graph needs; the rest waits for its first use."""

import subprocess
import sys

import pytest

import tinygraph as tg

LAZY = ("data", "show", "testing", "training")
# Heavy, and of use to none who only computes.
HEAVY = {
    "argparse",
    "asyncio",
    "bz2",
    "concurrent",
    "cupy",
    "ctypes.util",
    "difflib",
    "email",
    "gzip",
    "hashlib",
    "http",
    "hypothesis",
    "json",
    "logging",
    "lzma",
    "matplotlib",
    "multiprocessing",
    "nvidia",
    "pandas",
    "PIL",
    "pooch",
    "pytest",
    "queue",
    "scipy",
    "shutil",
    "sklearn",
    "socket",
    "ssl",
    "subprocess",
    "tarfile",
    "tempfile",
    "tomllib",
    "torch",
    "unittest",
    "urllib.request",
    "xml",
    "zipfile",
    "ziglang",
    *[f"tinygraph.{name}" for name in LAZY],
    "tinygraph.cli",
    "tinygraph.cuda.emulator.compiler",
    "tinygraph.cuda.emulator.module",
    "tinygraph.cuda.nvrtc.compiling",
    "tinygraph.cuda.reading.signature",
    "tinygraph.recipes",
}


def modules_after(statement):
    """The modules that a fresh interpreter has loaded, beyond those that numpy needs."""
    names = "import sys, numpy; before = set(sys.modules)\n{}\nprint(*set(sys.modules) - before)"
    command = [sys.executable, "-c", names.format(statement)]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_import_loads_nothing_heavy():
    loaded = modules_after("import tinygraph")
    assert "tinygraph.ops.relu" in loaded
    assert not loaded & HEAVY


@pytest.mark.parametrize("name", LAZY)
def test_a_room_is_loaded_when_it_is_first_used(name):
    loaded = modules_after(f"import tinygraph as tg; tg.{name}")
    assert f"tinygraph.{name}" in loaded
    assert name in tg.__all__ and name in dir(tg)


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="no attribute 'dato'"):
        _ = tg.dato
