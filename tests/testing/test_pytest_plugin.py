"""The fixture `kernel_check` in a fresh project: what passes, what fails, and what a user reads."""

import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import tinygraph
import tinygraph_pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
SHIFT = """template <typename T>
__global__ void shift(const T* x, T* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i GUARD n) y[i] = x[i] + STEP;
}
"""
HEAD = """
import numpy as np
from tinygraph.cuda import Out

x = np.arange(100, dtype=np.float32)
y = np.empty_like(x)
"""
CALL = 'kernel_check("shift.cu", "shift<float>", 1, 128, x, Out(y), 100, defines={"STEP": 3})'


@pytest.fixture
def project(pytester, monkeypatch):
    """Run pytest in a process of its own, in a folder that knows nothing of ours."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def run(body, *options, guard="<"):
        (pytester.path / "shift.cu").write_text(SHIFT.replace("GUARD", guard))
        (pytester.path / "test_shift.py").write_text(body)
        # `-p`, as an installed tinygraph would do: tests also run from a bare checkout.
        return pytester.runpytest_subprocess("-p", "tinygraph_pytest", *options)

    return run


def a_test(name, call):
    return f"\ndef test_{name}(kernel_check):\n    {call}\n"


def errors(text):
    """The lines of the failures that begin with E, without it."""
    return [line[1:].strip() for line in text.splitlines() if line.startswith("E")]


def test_a_right_kernel_passes_and_its_report_comes_back(project):
    body = HEAD + a_test("shift", f"report = {CALL}") + (
        "    assert report.ok and report.kernel.startswith('shift')\n"
        "    np.testing.assert_array_equal(y, x + 3)\n"
    )
    project(body).assert_outcomes(passed=1)


@pytest.mark.parametrize("style", ["long", "short"])
def test_a_wrong_kernel_fails_with_the_finding_and_no_line_of_ours(project, style):
    result = project(HEAD + a_test("shift", CALL), f"--tb={style}", guard="<=")
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    head, _, finding, source, *_ = errors(text)
    assert head.startswith("AssertionError: shift") and head.endswith(": 1 finding")
    assert finding.startswith("out-of-bounds") and finding.endswith("shift.cu:5")
    assert source == "5 | if (i <= n) y[i] = x[i] + STEP;"
    assert CALL in text and "tinygraph_pytest.py" not in text and "kernel.py" not in text


REFUSED = {  # name -> call, words of the error
    "arguments": (CALL.replace("x, Out(y)", "x"), "KernelLaunchError: shift<float>: arguments:"),
    "compiled": (CALL.replace('"STEP": 3', '"STEP": "missing"'), "KernelCompileError: "),
    "file": (CALL.replace("shift.cu", "absent.cu"), "absent.cu"),
    "block": (CALL.replace("1, 128", "1, 2000"), "KernelLaunchError: shift<float>: block:"),
}


def test_launches_that_are_refused(project):
    """The line of the test and the words of the error; no frame between.  And too small a grid."""
    body = HEAD + "".join(a_test(name, call) for name, (call, _) in REFUSED.items())
    result = project(body + a_test("grid", CALL.replace("128", "64")))
    result.assert_outcomes(failed=len(REFUSED) + 1)
    text = result.stdout.str()
    assert "tinygraph_pytest.py" not in text and "/tinygraph/" not in text
    for call, words in REFUSED.values():
        assert call in text
        assert any(words in line for line in errors(text)), words
    assert any(line.startswith("unwritten-output") for line in errors(text))


def test_dynamic_shared_memory_and_source_in_the_test(project):
    body = HEAD + '''
REVERSE = """
__global__ void reverse(float* y)
{
    extern __shared__ float tile[];
    tile[threadIdx.x] = y[threadIdx.x];
    BARRIER
    y[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
"""

def test_right(kernel_check):
    y = x.copy()
    kernel_check(REVERSE, "reverse", 1, 100, y, shared=400, defines={"BARRIER": "__syncthreads();"})
    np.testing.assert_array_equal(y, x[::-1])

def test_race(kernel_check):
    kernel_check(REVERSE, "reverse", 1, 100, x.copy(), shared=400, defines={"BARRIER": ""})

def test_too_little_shared_memory(kernel_check):
    barrier = {"BARRIER": "__syncthreads();"}
    kernel_check(REVERSE, "reverse", 1, 100, x.copy(), shared=396, defines=barrier)
'''
    result = project(body)
    result.assert_outcomes(passed=1, failed=2)
    kinds = [line.split()[0] for line in errors(result.stdout.str()) if line]
    assert "race" in kinds and "out-of-bounds" in kinds


def test_pytest_starts_without_numpy_and_tinygraph(project):
    result = project("""
import sys

import pytest

at_collection = {"numpy", "tinygraph"} & set(sys.modules)

def test_nothing_is_loaded(request):
    assert not at_collection
    assert request.config.pluginmanager.has_plugin("tinygraph_pytest")
    check = request.getfixturevalue("kernel_check")
    assert "tinygraph" not in sys.modules
    with pytest.raises(Exception, match="absent.cu"):
        check("absent.cu", "k", 1, 1)
    assert "tinygraph" in sys.modules
""", "-p", "no:hypothesispytest")  # fmt: skip
    result.assert_outcomes(passed=1)


def test_the_module_itself_loads_neither():
    code = "import sys, tinygraph_pytest; print(sorted({'numpy', 'tinygraph'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_the_entry_point_leads_to_the_fixture():
    """Its name is that of the module, for `-p tinygraph_pytest` must not register a second one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    ((name, value),) = project["project"]["entry-points"]["pytest11"].items()
    assert EntryPoint(name, value, "pytest11").load() is tinygraph_pytest
    assert name == tinygraph_pytest.__name__
    assert "tinygraph_pytest.py" in project["tool"]["hatch"]["build"]["targets"]["wheel"][
        "only-include"
    ]  # fmt: skip
    assert Path(tinygraph_pytest.__file__).parent == Path(tinygraph.__file__).parents[1]
