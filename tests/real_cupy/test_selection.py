"""Which tests run on the real CuPy and on a GPU."""

import ast
import types
from pathlib import Path

import pytest

from tests.real_cupy import selection

TESTS = Path(__file__).parents[1]


def item(fixtures=(), marks=(), **parameters):
    """As pytest collects it."""
    return types.SimpleNamespace(
        fixturenames=fixtures,
        callspec=types.SimpleNamespace(params=parameters),
        get_closest_marker=lambda name: name if name in marks else None,
    )


@pytest.mark.parametrize(
    "one, chosen",
    [
        (item(kernel_device="cuda"), True),
        (item(kernel_device="emulator"), False),
        (item(every_device="cuda"), True),
        (item(["rehearsed_cuda"]), True),
        (item(["rehearsed_cuda"], ["stand_in"]), False),
        (types.SimpleNamespace(get_closest_marker=lambda name: None), False),  # a doctest
    ],
)
def test_what_means_device_cuda(one, chosen):
    assert selection.means_cuda(one) is chosen


def test_files_without_such_tests_are_left_out():
    names = {str(path.relative_to(TESTS)) for path in selection.files(TESTS)}
    assert {"ops/test_relu.py", "cuda/test_capture.py", "data/test_feed.py"} < names
    assert not {"test_graph.py", "cuda/test_mutations.py", "optim/test_schedules.py"} & names
    assert not any(name.startswith("real_cupy/") for name in names)  # of the driver itself


def looks_inside(function):
    """Whether a function imports from a module of the stand-in's own, as `cupy._stream`."""
    for node in ast.walk(function):
        if isinstance(node, ast.ImportFrom) and node.module:
            inside = node.module.startswith("cupy._")
            if inside or (node.module == "cupy" and any(a.name[0] == "_" for a in node.names)):
                return True
    return False


@pytest.mark.parametrize("path", selection.files(TESTS), ids=lambda path: path.stem)
def test_what_looks_into_the_stand_in_says_so(path):
    """On the real CuPy it could only fail."""
    tree = ast.parse(path.read_text())
    if "pytestmark = pytest.mark.stand_in" in path.read_text():
        return
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for function in filter(looks_inside, functions):
        marks = [ast.unparse(decorator) for decorator in function.decorator_list]
        assert "pytest.mark.stand_in" in marks, f"{path.name}::{function.name}"
