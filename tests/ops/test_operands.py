"""Promotion: the whole table against PyTorch, every op by it, and where a Cast node stands."""

import itertools
import json

import numpy as np
import pytest

import tinygraph as tg
from tests.ops import result_types
from tests.ops.result_types import OPERANDS, operand
from tinygraph.base.errors import ArgumentError, DtypeError

TABLE = json.loads(result_types.FILE.read_text(encoding="utf-8"))
ALL_PAIRS = [*itertools.product(OPERANDS, repeat=2)]
USUAL = ["float32", "float64", "int64", "uint8", "bool", "float64[]", "int64[]", "1.0", "1", "True"]
PAIRS = [*itertools.product(USUAL, repeat=2)]
FUNCTIONS = {
    tg.add: np.add,
    tg.sub: np.subtract,
    tg.mul: np.multiply,
    tg.div: np.divide,
    tg.pow: np.power,
    tg.maximum: np.maximum,
    tg.minimum: np.minimum,
    tg.less: np.less,
    tg.equal: np.equal,
}
LOSSES = [
    tg.mse_loss,
    tg.l1_loss,
    tg.huber_loss,
    tg.half_squared_error,
    tg.binary_cross_entropy,
    tg.binary_cross_entropy_with_logits,
]


def expected_dtype(x, y):
    """As in PyTorch, and where it refuses as in numpy."""
    if TABLE[x][y] is not None:
        return np.dtype(TABLE[x][y])
    return np.result_type(x.removesuffix("[]"), y.removesuffix("[]"))


def test_the_table_is_that_of_pytorch():
    pytest.importorskip("torch", reason="needs PyTorch")
    assert result_types.of_torch() == TABLE


@pytest.mark.parametrize("wrap", [tg.Tensor, np.asarray], ids=["tensors", "arrays"])
def test_result_type_of_every_pair(wrap):
    wrong = {}
    for x, y in ALL_PAIRS:
        found = tg.result_type(*[operand(k, lambda *args: wrap(np.zeros(*args))) for k in (x, y)])
        if found != expected_dtype(x, y):
            wrong[x, y] = found
    assert not wrong and len(ALL_PAIRS) == 27**2


def test_promote_types():
    for x, y in itertools.product(result_types.DTYPES, repeat=2):
        assert tg.promote_types(x, np.dtype(y)) == expected_dtype(x, y)
    for bad in ("bfloat16", "complex64", None, np.longdouble, "text"):
        with pytest.raises(DtypeError, match=r"promote_types: dtype: expected .*tg\.float32"):
            tg.promote_types(bad, "float32")


def test_three_operands_of_three_tiers():
    whole, single = np.ones(2, "i1"), np.array(1.0)
    assert tg.result_type(whole, single, 1.0) == np.float64
    assert tg.result_type(whole, 1.0, np.int64(1)) == np.float32
    assert tg.result_type(whole, np.ones(2, "f4"), single, True) == np.float32


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_every_op_computes_in_that_dtype(function):
    for x, y in PAIRS:
        dtype = expected_dtype(x, y)
        tensors = [operand(kind, lambda *args: tg.Tensor(np.ones(*args))) for kind in (x, y)]
        if function in (tg.sub, tg.pow) and dtype.kind == "b":
            with pytest.raises(DtypeError, match="got bool"):
                function(*tensors)
            continue
        if function is tg.div and dtype.kind != "f":
            dtype = np.dtype(np.float32)
        arrays = [operand(kind, lambda *args: np.ones(*args)) for kind in (x, y)]
        expected = FUNCTIONS[function](*[np.asarray(a, dtype) for a in arrays])
        found = function(*tensors)
        assert found.dtype == expected.dtype, (x, y)
        np.testing.assert_array_equal(found.value, expected)


@pytest.mark.parametrize("function", LOSSES, ids=lambda f: f.__name__)
def test_losses_of_two_dtypes(function):
    """The gradient comes back in the dtype of each operand."""
    x, y = np.array([0.25, 0.5], "f4"), np.array([0, 1])
    exact = function(x.astype("f8"), y.astype("f8"))
    for other, dtype in ((y, "f4"), (y == 1, "f4"), (y.astype("f8"), "f8")):
        for pair in ((x, other), (other, x)):
            if function is tg.binary_cross_entropy and pair[1] is x:
                continue  # of probabilities of 0 and 1 it is infinite
            nodes = [tg.Tensor(a, requires_grad=a.dtype.kind == "f") for a in pair]
            loss = function(*nodes)
            loss.backward()
            assert loss.dtype == dtype
            assert all(n.grad.dtype == n.dtype for n in nodes if n.requires_grad)
        np.testing.assert_allclose(function(x, other).item(), exact.item(), rtol=1e-6)


@pytest.mark.parametrize("join", [tg.concatenate, tg.stack])
def test_joined_and_chosen_and_multiplied(join):
    whole, narrow, wide = np.ones((2, 2), int), np.ones((2, 2), "f4"), np.ones((2, 2))
    for arrays, dtype in (((whole, narrow), "f4"), ((narrow, wide), "f8"), ((whole, wide), "f8")):
        assert join(arrays).dtype == tg.matmul(*arrays).dtype == dtype
        assert tg.where(whole > 0, *arrays).dtype == dtype
    assert join((whole, whole > 0)).dtype == np.int64
    assert tg.where(whole > 0, whole, 2.5).dtype == np.float32


@pytest.mark.parametrize("number", [np.array(2.0), np.array(2), np.array(2.0, "f4")])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "bool"])
def test_arrays_without_axes_are_tensors_without_axes(dtype, number):
    x = tg.Tensor(np.ones(2, dtype))
    expected = expected_dtype(dtype, f"{number.dtype}[]")
    for y in (x * number, number * x, x * tg.Tensor(number)):
        assert isinstance(y, tg.Tensor) and y.dtype == expected


NUMBERS_OF_NUMPY = [np.float64(2), np.float32(2), np.float16(2), np.int64(2), np.int8(2), np.True_]


@pytest.mark.parametrize("number", NUMBERS_OF_NUMPY, ids=lambda n: n.dtype.name)
@pytest.mark.parametrize("shape", [(), (2,)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8", "bool"])
def test_numbers_of_numpy_are_those_of_python(dtype, shape, number):
    """As in PyTorch, on both sides: CLIP's `logit_scale * np.log(1 / 0.07)` is float32."""
    x, python = tg.Tensor(np.ones(shape, dtype)), {"f": "1.0", "i": "1", "b": "True"}
    expected = expected_dtype(dtype + "[]" * (shape == ()), python[number.dtype.kind])
    whole = expected.kind != "b"  # PyTorch has no difference and no power of bools
    found = [x * number, number * x, tg.add(x, number), tg.add(number, x)]
    found += [tg.maximum(x, number), tg.minimum(number, x), tg.where(x == x, x, number)]
    found += [x**number, number**x, x - number, number - x] if whole else []
    assert [y.dtype for y in found] == [expected] * len(found)
    assert tg.result_type(x, number) == tg.result_type(number, x) == expected
    x += number
    assert x.dtype == expected
    assert [(x > number).dtype, (number == x).dtype] == [np.dtype(bool)] * 2


def test_numbers_of_numpy_in_a_parameter():
    w = tg.Parameter(np.float32(3))
    with tg.no_grad():
        w *= np.float64(0.5)
        w -= np.int64(1)
    assert w.dtype == np.float32 and w.item() == 0.5
    y = w * np.log(1 / 0.07)
    y.backward()
    assert y.dtype == w.grad.dtype == np.float32
    assert abs(float(w.grad) - 2.6592600369327783) < 1e-6
    clipped = tg.clip(tg.arange(3), np.float64(0.5), np.float64(1.5))
    assert clipped.dtype == np.float32 and clipped.tolist() == [0.5, 1.0, 1.5]


def test_a_single_number_beyond_the_range():
    """What has a dtype is cast to that of the array; a number must fit."""
    small = tg.Tensor(np.ones(2, "i1"))
    for number in (np.array(300), tg.tensor(300)):
        assert (small * number).value.tolist() == [44, 44]  # modulo 2^8, as in PyTorch
    for number in (300, np.int64(300)):
        with pytest.raises(ArgumentError, match="one that int8 can hold, got 300"):
            small * number
    assert (tg.Tensor([1.0]) * np.float64(1e300)).item() == np.inf


def test_numbers_among_themselves():
    assert tg.add(1, 2).dtype == np.int64 and tg.add(1, 2.5).dtype == np.float32
    assert tg.div(1, 2).dtype == np.float32 and tg.add(True, True).dtype == bool


def test_a_cast_stands_only_where_a_tensor_has_to_change():
    x32 = tg.Tensor([1.0], requires_grad=True)
    x64 = tg.Tensor(np.ones(1), requires_grad=True)
    y = x32 * x64
    assert [x.op.name if x.op else "leaf" for x in y.inputs] == ["cast", "leaf"]
    assert y.inputs[1] is x64
    for other in (2, 2.5, True, np.ones(1, "f4"), np.ones(1, "i1"), [1.0], np.ones(1, bool)):
        assert all(x.op is None for x in (x32 * other).inputs)
    y.backward()
    assert x32.grad.dtype == np.float32 and x64.grad.dtype == np.float64


def test_ops_themselves_refuse_to_promote():
    with pytest.raises(DtypeError, match="mul: y: expected float32, the dtype of x, got float64"):
        (tg.Tensor([1.0]) * 2.0).op(np.ones(1, "f4"), np.ones(1))
