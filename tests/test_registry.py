"""Every op is complete: mathematics, numpy, kernel, reference, tests, bad input, documentation.

Adding an op means one file in ops/, one .cu in cuda/kernels/, one test file, and one export
line.  What is missing fails here.
"""

import ast
import importlib
import inspect
import pathlib
import re

import pytest

import tinygraph as tg
from tests import reference
from tests.op_contract import OpContract
from tinygraph import ops
from tinygraph.frozen import complete
from tinygraph.op import registry

OPS = pathlib.Path(ops.__file__).parent
TESTS = pathlib.Path(__file__).parent / "ops"

# Op files that still wait for their kernel: none, and so it must stay.
WITHOUT_KERNEL: set[str] = set()

# Op files that need none: their output is a view of the input, or a copy between devices.
MOVES_NOTHING = {"reshape", "to"}

CLASSES = {
    name: cls for name, cls in registry.items() if cls.__module__.startswith("tinygraph.ops.")
}
STEMS = sorted({cls.__module__.rpartition(".")[2] for cls in CLASSES.values()})
FUNCTIONS = sorted(ops.EXPORTS)


def contracts(stem):
    """The OpContract subclasses of an op's test file."""
    module = importlib.import_module(f"tests.ops.test_{stem}")
    found = [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, OpContract)]
    return [cls for cls in found if cls is not OpContract and cls.__module__ == module.__name__]


def public_functions(stem):
    """The functions of an op file that ops/__init__.py exports."""
    module = importlib.import_module(f"tinygraph.ops.{stem}")
    return {name for name in FUNCTIONS if getattr(ops, name).__module__ == module.__name__}


@pytest.mark.parametrize("stem", STEMS)
def test_every_public_function_has_its_contract(stem):
    tested = {cls.function.__name__ for cls in contracts(stem)}
    assert public_functions(stem) <= tested, f"tests/ops/test_{stem}.py lacks an OpContract"
    for cls in contracts(stem):
        assert cls.reference.__module__.startswith(reference.__name__), "no oracle of its own"
        assert cls.bad_input, f"{cls.__name__}: bad input is missing"
        assert cls.problems is not None


@pytest.mark.parametrize("stem", STEMS)
def test_every_op_has_a_kernel_or_waits_for_one(stem):
    has_kernel = (OPS.parent / "cuda" / "kernels" / f"{stem}.cu").exists()
    classes = [cls for cls in CLASSES.values() if cls.__module__.endswith(f".{stem}")]
    runs = [
        cls.forward_kernel is not tg.Op.forward_kernel
        and (cls.backward_kernel is tg.Op.backward_kernel) is (cls.backward is tg.Op.backward)
        for cls in classes
    ]
    if stem in WITHOUT_KERNEL:
        assert not has_kernel, f"{stem} has a kernel: take it off WITHOUT_KERNEL"
        assert not any(runs), f"{stem} launches a kernel that is not there"
    else:
        assert has_kernel is (stem not in MOVES_NOTHING), f"kernels/{stem}.cu is missing, or unused"
        assert all(runs), f"an op of {stem} has no forward_kernel or no backward_kernel"


@pytest.mark.parametrize("stem", sorted(set(STEMS) - WITHOUT_KERNEL))
def test_the_contract_runs_every_kernel(stem):
    for cls in contracts(stem):
        assert cls.has_kernel(), f"{cls.__name__} would leave the kernel tests out"


def test_the_waiting_list_names_ops():
    assert set(STEMS) >= WITHOUT_KERNEL | MOVES_NOTHING and not WITHOUT_KERNEL & MOVES_NOTHING


@pytest.mark.parametrize("stem", STEMS)
def test_the_module_docstring_holds_the_mathematics(stem):
    text = importlib.import_module(f"tinygraph.ops.{stem}").__doc__
    assert re.search(r"^    \S.*[=<]", text, re.MULTILINE), "no formula"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_docstring_is_full(name):
    text = inspect.getdoc(getattr(tg, name))
    sections = ["Parameters", "Returns", "Raises", "Examples"]
    for section in sections:
        assert f"{section}\n{'-' * len(section)}" in text, f"{name}: {section} is missing"
    assert ">>> " in text and "Tensor" in text
    documented = set(re.findall(r"[*\w]+", text[text.index("Parameters") :]))
    for argument in inspect.signature(getattr(tg, name)).parameters:
        assert argument in documented, f"{name}: argument {argument} is not described"


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_an_op_is_immutable_and_comparable(name):
    """Frozen dataclasses: equal hyper-parameters make equal ops, which a plan's key relies on."""
    complete(CLASSES[name])
    params = getattr(CLASSES[name], "__dataclass_params__", None)
    assert params is not None and params.frozen and params.eq


@pytest.mark.parametrize("stem", STEMS)
def test_the_numpy_bodies_never_assert_and_never_ask_for_the_device(stem):
    tree = ast.parse((OPS / f"{stem}.py").read_text())
    assert not any(isinstance(node, ast.Assert) for node in ast.walk(tree))
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert "device" not in names or stem == "to"  # which is about nothing else


SHARED = {"__init__", "methods"}


def test_every_other_file_of_the_room_is_an_op():
    """What several ops share stands in ops/shared/."""
    assert {p.stem for p in OPS.glob("*.py")} - SHARED == set(STEMS)
