"""Former import paths find the modules that have moved; functions of their names stay functions."""

import importlib
import importlib.util
import pickle
import re
import subprocess
import sys

import pytest

import tinygraph as tg
from tests import stubs
from tests.rooms import COURSE
from tinygraph.base.moved import GONE, HOMES, NAMES, home


@pytest.mark.parametrize("name", sorted(HOMES))
def test_a_former_path_is_the_module_itself(name):
    pytest.importorskip("sklearn") if name.endswith("sklearn") else None
    module = importlib.import_module(name)
    assert module is importlib.import_module(HOMES[name]) is sys.modules[name]
    assert module.__name__ == HOMES[name]


IN_ORDER = [
    "import tinygraph.tensor, tinygraph.device, tinygraph.ops.relu; import tinygraph as tg",
    "import tinygraph as tg; import tinygraph.tensor, tinygraph.device, tinygraph.ops.relu",
    "from tinygraph.tensor import Tensor; from tinygraph.ops.relu import Relu\n"
    "import tinygraph as tg; assert Tensor is tg.Tensor",
]


@pytest.mark.parametrize("statements", IN_ORDER)
def test_functions_of_these_names_stay_functions(statements):
    code = f"{statements}\nassert all(map(callable, (tg.tensor, tg.device, tg.relu, tg.ops.relu)))"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_there_is_one_module_of_a_package_that_has_moved():
    import tinygraph.interop.onnx.export
    import tinygraph.onnx.export

    assert tinygraph.onnx.export is tinygraph.interop.onnx.export
    assert tg.onnx is tinygraph.onnx is tinygraph.interop.onnx


def test_former_attributes_and_names():
    from tinygraph.ops.elementwise import Exp, exp
    from tinygraph.ops.products import bmm
    from tinygraph.ops.shared.unary import Unary
    from tinygraph.shapes import Windows, pair, require_float

    assert exp([0.0]).item() == 1 and callable(bmm) and issubclass(Exp, Unary)
    assert callable(pair) and callable(require_float) and Windows
    assert tg.op.Op is tg.Op and tg.memory.Memory


@pytest.mark.parametrize("name", ["tinygraph.errorz", "tinygraph.onnx.nothing", "tinygraph.ops.no"])
def test_a_path_that_never_was_is_named(name):
    with pytest.raises(ModuleNotFoundError, match=name.rpartition(".")[2]) as error:
        importlib.import_module(name)
    assert error.value.name == name
    assert name not in sys.modules


@pytest.mark.parametrize("name", sorted(GONE))
def test_what_has_left_the_package_says_where_it_lies(name):
    with pytest.raises(ModuleNotFoundError, match=re.escape(GONE[name])) as error:
        importlib.import_module(name)
    assert error.value.name == name and name not in sys.modules
    place = "tinygraph_course" if name.endswith("course") else "benchmarks/machine_code"
    assert place in GONE[name]
    if place != COURSE.name or COURSE.exists():
        assert importlib.util.find_spec(place.replace("/", "."))


def test_errors_are_named_and_pickled_by_the_path_that_programs_import():
    error = tg.errors.ShapeError("relu", "x", "one axis", "none")
    assert type(error).__module__ == "tinygraph.errors"
    assert type(pickle.loads(pickle.dumps(error))) is tg.errors.ShapeError


@pytest.mark.parametrize(("room", "name"), sorted(NAMES))
def test_a_name_that_has_left_its_module_is_found_there(room, name):
    found = getattr(importlib.import_module(NAMES[room, name]), name)
    assert getattr(importlib.import_module(room), name) is found
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = importlib.import_module(room).nothing


def test_each_home_is_there():
    assert all(importlib.util.find_spec(name) for name in HOMES.values())
    assert home("tinygraph") is None and home("numpy.errors") is None


def test_stubs_are_fresh():
    assert stubs.there() == stubs.stubs(), "python -m tests.stubs writes them"
