"""Which kernels a .cu file holds: the `instances` lines, and that ours name every kernel."""

import re

import pytest

from tinygraph.base.errors import ArgumentError, KernelCompileError
from tinygraph.cuda.nvrtc.compiling import resources
from tinygraph.cuda.reading.instances import instances, inventory
from tinygraph.cuda.reading.signature import kernels
from tinygraph.cuda.reading.source import Source, kernel_files

TEMPLATE = "template <typename T> __global__ void scale(T* x) { x[0] *= 2; }\n"


def listed(tmp_path, text):
    """(name, defines) of each instance of a file with that text."""
    path = tmp_path / "scale.cu"
    path.write_text(text)
    return [(instance.name, instance.defines) for instance in instances(path)]


@pytest.mark.parametrize(
    "text, expected",
    [
        (
            "// instances: scale<float>, scale<double>\n",
            [("scale<float>", {}), ("scale<double>", {})],
        ),
        ("/*\n * instances: scale<float>\n */\n", [("scale<float>", {})]),
        ("/* instances: scale<float> */\n", [("scale<float>", {})]),
        ("/*\ninstances: scale<float>*/\n", [("scale<float>", {})]),
        (
            "//   instances:  scale<float>,\n//  scale<double>,\n//  scale<int>\n",
            [("scale<float>", {}), ("scale<double>", {}), ("scale<int>", {})],
        ),
        (
            "// instances: a<T, 1>, b<T> for T in float, double\n",
            [("a<float, 1>", {}), ("a<double, 1>", {}), ("b<float>", {}), ("b<double>", {})],
        ),
        (
            "// instances: a<T>,\n// b<Tx, T> for T in float\n",
            [("a<float>", {}), ("b<Tx, float>", {})],
        ),
        (
            "// instances: a|b<T, X | Y<int, 2>> for T in float\n",
            [(f"{name}<float, {of}>", {}) for name in "ab" for of in ("X", "Y<int, 2>")],
        ),
        (
            "// instances (TILE=16, DEBUG): a<float>\n// instances (TILE = 32): a<float>\n",
            [("a<float>", {"TILE": "16", "DEBUG": "1"}), ("a<float>", {"TILE": "32"})],
        ),
        ("// the instances: of this sort\n// instances: a\n", [("a", {})]),
    ],
)
def test_statements(tmp_path, text, expected):
    assert listed(tmp_path, text) == expected


ONE = "__global__ void one(int* x) { *x = 1; }\n__device__ int two() { return 2; }\n"
SIZED = "template <typename T, int N> __global__ void sized(T* x) { x[N] = 1; }\n"


@pytest.mark.parametrize(
    "text, expected",
    [
        (ONE, ["one"]),
        (TEMPLATE + ONE, ["scale<float>", "scale<double>", "one"]),
        ("// instances: scale<int>\n" + TEMPLATE + ONE, ["scale<int>", "one"]),
        (
            "// instances: sized<float, 3>\n" + TEMPLATE + SIZED,
            ["sized<float, 3>", "scale<float>", "scale<double>"],
        ),
    ],
)
def test_a_kernel_without_a_statement_is_taken_as_ops_launch_it(tmp_path, text, expected):
    assert listed(tmp_path, text) == [(name, {}) for name in expected]


@pytest.mark.parametrize(
    "text, words",
    [
        ("// instances:\n", "kernel names"),
        ("// instances: scale<float>,\n\n// scale<double>\n", "a name after the last comma"),
        ("// instances: scale<float>,", "a name after the last comma"),
        ("// instances: 3scale\n", "'3scale'"),
        ("// instances (1TILE=3): scale<float>\n", "NAME=VALUE"),
        ("// instances: scale<T>, other<float> for T in float\n", "the word T in every name"),
        (SIZED, "a template of more than T"),
        ("int x;", "expected a kernel"),
    ],
)
def test_bad_statements(tmp_path, text, words):
    with pytest.raises(ArgumentError, match=re.escape(words)) as error:
        listed(tmp_path, text)
    assert "scale.cu" in str(error.value) and "instances: NAME<float>" in str(error.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(KernelCompileError, match=r"absent\.cu"):
        inventory([tmp_path / "absent.cu"])


# What stands in the place of the first template parameter, by its name: a kernel that only moves
# elements is templated on a `Word`, an unsigned integer of the element's size.
WORDS = ("unsigned char", "unsigned short", "unsigned int", "unsigned long long")
INTEGERS = "bool", "unsigned char", "int", "long long"
TYPES = {"Word": WORDS, "Integer": INTEGERS, "T": ("float", "double")}


@pytest.mark.parametrize("path", kernel_files(), ids=lambda path: path.stem)
def test_every_kernel_of_ours_is_listed_in_all_its_types(path):
    names = [instance.name for instance in instances(path)]
    for kernel in kernels(Source.read(path)):
        if kernel.template:
            for dtype in TYPES.get(kernel.template[0], TYPES["T"]):
                form = re.compile(rf"{kernel.name}\s*<\s*{dtype}\b.*>")
                assert any(form.fullmatch(name) for name in names), f"{kernel.name}<{dtype}>"
        else:
            assert kernel.name in names
    known = {kernel.name for kernel in kernels(Source.read(path))}
    assert {name.partition("<")[0].strip() for name in names} <= known


@pytest.mark.second
def test_our_files_are_all_in_the_inventory():
    assert {instance.path for instance in inventory()} == set(kernel_files())


FIRST = {instance.path: instance for instance in reversed(inventory())}


@pytest.mark.second
@pytest.mark.parametrize("instance", FIRST.values(), ids=str)
def test_our_kernels_compile_without_spills(instance):
    """One instance of each file and one architecture; `make kernels` goes through all of them."""
    source = Source.read(instance.path, instance.defines)
    assert resources(source, instance.name, "sm_75").spills == 0
