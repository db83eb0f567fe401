"""The plugin in a fresh project: what passes, what fails, and what a user reads."""

import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import tinygraph
import tinygraph_pytest

pytestmark = pytest.mark.second

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
    body = (
        HEAD
        + a_test("shift", f"report = {CALL}")
        + (
            "    assert report.ok and report.kernel.startswith('shift')\n"
            "    np.testing.assert_array_equal(y, x + 3)\n"
        )
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
    body = (
        HEAD
        + '''
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
    )
    result = project(body)
    result.assert_outcomes(passed=1, failed=2)
    kinds = [line.split()[0] for line in errors(result.stdout.str()) if line]
    assert "race" in kinds and "out-of-bounds" in kinds


def test_pytest_starts_without_numpy_and_tinygraph(project):
    result = project(
        """
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
""",
        "-p",
        "no:hypothesispytest",
    )
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
    assert (
        "tinygraph_pytest.py"
        in project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    )
    assert Path(tinygraph_pytest.__file__).parent == Path(tinygraph.__file__).parents[1]


# ---- gradients, devices, profiles -----------------------------------------------------------

GRADIENTS = """
import tinygraph as tg

def test_right(gradcheck):
    assert gradcheck(tg.tanh, [[0.5, -1.0]]).ok

def test_wrong(gradcheck):
    gradcheck(lambda x: tg.Tensor(x.value**2) * x, [[1.0, -2.0]])

def test_on_a_kink(gradcheck):
    gradcheck(tg.relu, [[0.0]])
"""


def test_gradcheck_fails_where_a_gradient_is_wrong_or_unknown(project):
    result = project(GRADIENTS)
    result.assert_outcomes(passed=1, failed=2)
    text = result.stdout.str()
    assert "GradcheckError" in text and "inconclusive" in text
    assert "tinygraph_pytest.py" not in text and "gradcheck.py" not in text


DEVICES = """
import tinygraph as tg

def test_relu(tg_device):
    x = tg.Tensor([-1.0, 2.0], device=tg_device)
    assert x.device == tg_device and tg.relu(x).numpy().tolist() == [0, 2]
"""


def test_a_test_runs_on_every_device_that_is_here(project):
    result = project(DEVICES, "-v")
    result.assert_outcomes(passed=len(tinygraph_pytest.devices()))
    for name in tinygraph_pytest.devices():
        result.stdout.fnmatch_lines([f"*test_relu?{name}?*PASSED*"])
    assert tinygraph_pytest.devices()[0] == "cpu" and not tinygraph_pytest.missing("cpu")


def test_a_device_that_is_absent_is_left_out(project, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CXX", "no-such-compiler")
    result = project(DEVICES, "-v")
    assert "test_relu[cpu]" in result.stdout.str()
    assert "test_relu[emulator]" not in result.stdout.str()


GPU = """
import pytest

@pytest.mark.gpu
def test_one(): raise AssertionError

@pytest.mark.gpu
def test_two(): raise AssertionError

def test_other(): pass
"""


@pytest.mark.skipif(not tinygraph_pytest.missing("cuda"), reason="there is a GPU")
def test_without_a_gpu_marked_tests_are_skipped_and_the_summary_says_so(project):
    result = project(GPU, "--strict-markers")
    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines(["*tests without a GPU*", "2 tests marked gpu did not run: *"])
    assert "Way out" in result.stdout.str()


PROFILE = """
def test_profile():
    import sys
    assert ("hypothesis" in sys.modules) is LOADED
    from hypothesis import given, settings, strategies as st
    seen = []

    @given(st.integers())
    def drawn(n):
        seen.append(n)

    drawn()
    assert len(seen) == EXAMPLES
"""


@pytest.mark.parametrize(("profile", "examples"), [("tinygraph-dev", 20), ("tinygraph-ci", 200)])
def test_a_profile_that_is_asked_for(project, profile, examples):
    body = PROFILE.replace("LOADED", "True").replace("EXAMPLES", str(examples))
    project(body, f"--hypothesis-profile={profile}").assert_outcomes(passed=1)


def test_hypothesis_is_not_imported_for_the_profiles(project):
    body = PROFILE.replace("LOADED", "False").replace("EXAMPLES", "100")  # hypothesis's own
    project(body, "-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_a_conftest_that_loads_a_profile_by_itself(project, pytester):
    pytester.makeconftest(
        "import tinygraph_pytest\nfrom hypothesis import settings\n"
        "tinygraph_pytest.register_profiles()\nsettings.load_profile('tinygraph-dev')\n"
    )
    body = PROFILE.replace("LOADED", "True").replace("EXAMPLES", "20")
    project(body).assert_outcomes(passed=1)
