"""Cast and astype: which numbers come out, and where there is a gradient."""

import numpy as np
import pytest

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.strategies import elementwise_problems
from tinygraph.base.errors import DtypeError
from tinygraph.ops.common.cast import Cast


class TestAstype(OpContract):
    function = staticmethod(tg.astype)
    reference = staticmethod(reference.astype)
    problems = elementwise_problems(-5.0, 5.0).map(lambda p: p._replace(kwargs={"dtype": "int32"}))
    differentiable = False
    bad_input = [
        Bad("unknown", ([1.0], "float31"), {}, DtypeError, "astype: dtype: expected a float up"),
        Bad("complex", ([1.0], "complex64"), {}, DtypeError, "astype: dtype: expected a float"),
        Bad("long double", ([1.0], np.longdouble), {}, DtypeError, "a float up to 64 bits"),
        Bad("text", ([1.0], str), {}, DtypeError, "got <U"),
    ]

    def test_the_same_dtype_is_the_same_node(self):
        x = tg.Tensor([1.0])
        assert x.astype("float32") is x and x.astype(np.float64) is not x

    def test_the_gradient_is_cast_back(self):
        x = tg.Tensor([1.0, 2.0], requires_grad=True)
        y = x.astype("float64") ** 2
        assert y.dtype == np.float64
        y.backward(np.ones(2))
        assert x.grad.dtype == np.float32 and x.grad.tolist() == [2, 4]

    def test_down_to_float32(self):
        x = tg.Tensor(np.array([0.1, 1e300]), requires_grad=True)
        y = x.astype("float32")
        assert y.value[0] == np.float32(0.1) and y.value[1] == np.inf
        y.backward(np.float32([0.1, 2]))
        assert x.grad.dtype == np.float64 and x.grad[0] == float(np.float32(0.1))

    @pytest.mark.parametrize("dtype", ["int32", "uint8", bool])
    def test_no_gradient_through_integers_and_bools(self, dtype):
        x = tg.Tensor([0.0, 2.0], requires_grad=True)
        y = x.astype(dtype)
        assert not y.requires_grad and not y.astype("float32").requires_grad
        assert y.astype("float32").value.tolist() == [0, 1 if dtype is bool else 2]


class TestClone(OpContract):
    function = staticmethod(tg.clone)
    reference = staticmethod(lambda x: reference.elementwise(lambda v: v, x))
    problems = elementwise_problems()
    conventions = [Convention("all bits", ([np.nan, -0.0, np.inf],), value=[np.nan, -0.0, np.inf])]
    bad_input = [Bad("text", (["a"],), {}, DtypeError, "expected floats up to 64 bits")]

    @pytest.mark.parametrize("dtype", ["float16", "int8", "uint64", "bool"])
    def test_of_any_dtype(self, dtype):
        x = tg.Tensor([0, 1], dtype=dtype)
        y = x.clone()
        assert y.dtype == x.dtype and y.value.tolist() == [0, 1]
        assert not np.shares_memory(x.value, y.value)


PAIRS = [
    ("float64", "float32"),
    ("float32", "float64"),
    ("float64", "int64"),
    ("float32", "int8"),
    ("float32", "bool"),
    ("bool", "float64"),
    ("int64", "int16"),
    ("int8", "uint64"),
    ("uint8", "float32"),
    ("int32", "bool"),
    ("uint64", "float32"),
    ("bool", "float16"),
    ("float16", "bool"),
    ("float16", "int32"),
    ("int64", "float16"),
]


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_kernel_between_dtypes(kernel_device, old, new):
    """Towards zero, modulo 2^bits, nearest with halves to even: as numpy does each."""
    values = np.array([0, 1, 2, 3.75, 100.5, 127], np.float64).astype(old)
    if values.dtype.kind in "iu":  # wide ones are cut, or rounded
        values[-1] = np.iinfo(old).max
    if values.dtype.kind == "f":
        values[:2] = -0.0, -1.9
    y = tg.astype(tg.Tensor(values, device=kernel_device), new)
    with np.errstate(over="ignore"):
        expected = values.astype(new)
    assert y.dtype == new and y.numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernel_from_every_float16(kernel_device, dtype):
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    y = tg.astype(tg.Tensor(halves, device=kernel_device), dtype).numpy()
    np.testing.assert_array_equal(y, halves.astype(dtype))
    numbers = ~np.isnan(halves)
    assert (np.signbit(y) == np.signbit(halves))[numbers].all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernel_to_float16_rounds_halves_to_even(kernel_device, dtype):
    """Every float16 above 0, the middle above each, and what lies on either side of the middle."""
    with np.errstate(over="ignore"):
        halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(dtype)
    above = np.append(halves[1:], dtype(65536))
    middle = (halves + above) / 2
    values = np.concatenate(
        [
            halves,
            middle,
            np.nextafter(middle, dtype(0)),
            np.nextafter(middle, dtype(np.inf)),
            np.array([1e30, np.inf], dtype),
        ]
    )
    values = np.concatenate([values, -values, np.array([np.nan], dtype)])
    y = tg.astype(tg.Tensor(values, device=kernel_device), np.float16).numpy()
    with np.errstate(over="ignore"):
        expected = values.astype(np.float16)
    np.testing.assert_array_equal(y, expected)
    assert y[:-1].tobytes() == expected[:-1].tobytes()


def test_kernel_casts_the_gradient_back(kernel_device):
    x = tg.Tensor(np.array([0.5, 2], np.float16), requires_grad=True, device=kernel_device)
    tg.astype(x, "float32").backward(np.float32([0.1, 70000]))
    with np.errstate(over="ignore"):
        expected = np.float32([0.1, 70000]).astype(np.float16)
    grad = x.device.to_numpy(x.grad)
    assert grad.dtype == np.float16 and grad.tolist() == expected.tolist()


def test_kernel_of_float16_to_itself(kernel_device):
    x = np.array([0.5, -0.0, np.inf, np.nan], np.float16)
    y = Cast(np.dtype(np.float16))(tg.Tensor(x, device=kernel_device))
    assert y.dtype == np.float16 and y.numpy().tobytes() == x.tobytes()


class TestCast(OpContract):
    """The node itself, to the dtype that x has already: the identity."""

    function = staticmethod(lambda x: Cast(x.dtype)(x))
    reference = staticmethod(reference.astype)
    problems = elementwise_problems()
    large_problems = (Problem((np.sin(np.arange(700.0)),)),)
    bad_input = [Bad("complex", (np.ones(2, complex),), {}, DtypeError, "floats up to 64 bits")]
