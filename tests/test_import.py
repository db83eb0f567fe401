"""`import tinygraph` loads what a graph needs; the rest waits for its first use."""

import subprocess
import sys
from pathlib import Path

import pytest

import tinygraph as tg
from tinygraph.engine.operators import Operators

LAZY = ("data", "distributed", "nn", "onnx", "optim", "show", "testing", "training")
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
    "mpi4py",
    "multiprocessing",
    "nvidia",
    "onnx",
    "onnxruntime",
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
    "tensorboardX",
    "tomllib",
    "torch",
    "unittest",
    "urllib.request",
    "xml",
    "zipfile",
    "ziglang",
    *[f"tinygraph.{name}" for name in LAZY],
    "tinygraph.interop.onnx",
    "tinygraph.cli",
    "tinygraph.cuda.emulator.compiler",
    "tinygraph.cuda.emulator.native",
    "tinygraph.cuda.arguments",
    "tinygraph.cuda.nvrtc.compiling",
    "tinygraph.cuda.reading.signature",
    "tinygraph.plan.compiled",
    "tinygraph.plan.graph_plan",
    "tinygraph.recipes",
}


def modules_after(statement):
    """The modules that a fresh interpreter has loaded, beyond those that numpy needs."""
    names = "import sys, numpy; before = set(sys.modules)\n{}\nprint(*set(sys.modules) - before)"
    command = [sys.executable, "-c", names.format(statement)]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_import_loads_nothing_heavy():
    loaded = modules_after("import tinygraph")
    assert "tinygraph.engine.graph" in loaded
    assert not loaded & HEAVY


def test_an_op_is_loaded_when_it_is_first_used():
    """As a name, as a method and as an operator, and is a plain name from then on."""
    file = "tinygraph.ops.elementwise.relu"
    assert file not in modules_after("import tinygraph as tg; tg.Tensor([1.0]); 'relu' in dir(tg)")
    for use in ("tg.relu", "tg.Tensor([1.0]).relu()", "tg.ops.relu", "tg.nn.functional.relu"):
        assert file in modules_after(f"import tinygraph as tg; {use}")
    assert "tinygraph.ops.elementwise.arithmetic" in modules_after(
        "import tinygraph as tg; 1 + tg.Tensor([1.0])"
    )
    assert tg.relu is tg.ops.relu is tg.Tensor.relu
    assert vars(tg)["relu"] is vars(tg.ops)["relu"] is vars(Operators)["relu"] is tg.relu


@pytest.mark.parametrize(
    "path",
    ["nn.conv.Conv2d", "ops.windows.conv2d.Conv2d", "ops.elementwise.elementwise.Exp",
     "ops.elementwise.Exp", "training.profile.Profile", "ops.products.linear.Linear"],
)  # fmt: skip
def test_files_of_a_room_are_found_by_attribute(path):
    command = [sys.executable, "-c", f"import tinygraph as tg; assert callable(tg.{path})"]
    subprocess.run(command, check=True)


def test_the_registry_has_all_ops():
    registry = "tg.op.registry['tinygraph.ops.windows.max_pool2d.MaxPool2d']"
    assert "tinygraph.ops.windows.max_pool2d" in modules_after(
        f"import tinygraph as tg; {registry}"
    )


def test_a_training_needs_no_reader_of_elf_files():
    assert "elftools" not in modules_after("import tinygraph.training, tinygraph.cuda.nvrtc")


ALONE = """
import sys, types
alone = sys.modules["tinygraph"] = types.ModuleType("tinygraph")  # in the place of __init__.py
alone.__path__ = [sys.argv[1]]
import numpy as np
from tinygraph import cuda
y = np.zeros(8, np.float32)
two = cuda.Kernel("__global__ void two(float* y) { y[threadIdx.x] = 2; }", "two")
two(1, 8, y)
assert y.sum() == 16 and two.check(1, 8, cuda.Out(y)).ok
print(*{name.split(".")[1] for name in sys.modules if name.startswith("tinygraph.")})
"""


def test_kernels_need_neither_ops_nor_nn():
    """The room of kernels, and what it needs, run where nothing else of the package is loaded."""
    command = [sys.executable, "-c", ALONE, str(Path(tg.__file__).parent)]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert {*found.split()} == {"base", "engine", "cuda"}


def test_the_command_needs_no_other_library():
    """It imports all rooms, and works where only numpy's are installed."""
    libraries = {"sklearn", "onnx", "tensorboardX", "matplotlib", "PIL", "mpi4py", "hypothesis"}
    assert not modules_after("import tinygraph.cli") & libraries


# Modules of ours that are loaded, which more and more files would need.
MODULES = {"tinygraph": 58, "tinygraph.training": 190}


@pytest.mark.parametrize("room", MODULES)
def test_an_import_loads_no_more_modules_than_it_did(room):
    loaded = {m for m in modules_after(f"import {room}") if m.split(".")[0] == "tinygraph"}
    assert len(loaded) <= MODULES[room], sorted(loaded)


# What an import costs, in what can be counted: seconds depend on the machine and on what it does.
# Files of ops are not: one more is one more op.
MOST = {"ours": 44, "theirs": 15, "bytes": 238_000, "compiled": 340}
COUNT = """
import sys, numpy
before, texts = set(sys.modules), []
def hook(event, arguments):
    if event == "compile" and str(arguments[1]).startswith("<"):
        texts.append(arguments[1])
sys.addaudithook(hook)
import tinygraph
loaded = {m for m in set(sys.modules) - before if sys.modules[m].__name__ == m}
loaded = {m for m in loaded if not m.startswith("tinygraph.ops.")}
ours = [m for m in loaded if m.startswith("tinygraph")]
size = sum(len(open(sys.modules[m].__file__, "rb").read()) for m in ours)
print(len(ours), len(loaded) - len(ours), size, len(texts))
"""


def test_import_costs_no_more_than_it_did():
    """Modules of ours and of others, bytes of source, texts compiled (each dataclass has some)."""
    command = [sys.executable, "-c", COUNT]
    counted = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    figures = dict(zip(MOST, map(int, counted), strict=True))
    if sys.version_info[:2] != (3, 11):  # others load and compile other modules of their own
        del figures["theirs"], figures["compiled"]
    assert not {what: n for what, n in figures.items() if n > MOST[what]}, figures


@pytest.mark.second
@pytest.mark.parametrize(
    "statement",
    [
        "import tinygraph.plan.runner",
        "from tinygraph.plan import plan",
        "import tinygraph.engine.device, tinygraph.engine.tensor",
    ],
)
def test_functions_stay_functions_when_modules_of_their_names_are_loaded(statement):
    """Python binds a module to its name in the package; these share theirs with a function."""
    for code in (f"import tinygraph as tg; {statement}", f"{statement}; import tinygraph as tg"):
        code += "; assert all(map(callable, (tg.plan, tg.compile, tg.device, tg.tensor)))"
        subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", LAZY)
def test_a_room_is_loaded_when_it_is_first_used(name):
    loaded = modules_after(f"import tinygraph as tg; tg.{name}")
    assert loaded & {f"tinygraph.{name}", f"tinygraph.interop.{name}"}
    assert name in tg.__all__ and name in dir(tg)


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="no attribute 'dato'"):
        _ = tg.dato
