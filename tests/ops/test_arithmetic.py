"""add, sub, mul, div, pow, maximum, minimum: against Python's operators, and at their edges."""

import warnings

import numpy as np
import pytest

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import broadcastable_problems
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError
from tinygraph.engine.memory import eager_memory
from tinygraph.ops.common.operands import unbroadcast

ALL = ["add", "sub", "mul", "div", "pow", "maximum", "minimum"]
SHAPES = Bad("shapes", (np.ones((2, 3)), np.ones((2, 4))), {}, ShapeError, "(2, 3) and (2, 4)")
TEXT = Bad("text", (np.ones(2), "ab"), {}, DtypeError, "expected")
HALF = Bad("float16", (np.ones(2, "f2"), np.ones(2, "f2")), {}, DtypeError, "got float16")
BOOLS = Bad(
    "bools",
    (np.array([True]), np.array([True])),
    {},
    DtypeError,
    "float32, float64 or an integer, got bool",
)

without_ties = broadcastable_problems().map(  # the same seed twice gives the same numbers
    lambda problem: problem._replace(args=(problem.args[0], problem.args[1] + 0.3))
)

# Several blocks; sums by neighbouring and by distant threads, and in two stages; and more axes than
# a kernel takes.
WAVES = np.sin(np.arange(900.0)).reshape(20, 45)
LARGE = tuple(
    Problem((x + 2, y + 2.5))
    for x, y in [
        (WAVES, WAVES[:1]),
        (WAVES[:, :1], WAVES),
        (WAVES, WAVES[0, 0]),
        (np.ones((2, 1) * 4), np.sin(np.arange(81.0)).reshape((1, 3) * 4)),
    ]
)


class TestAdd(OpContract):
    function = staticmethod(tg.add)
    reference = staticmethod(reference.add)
    problems = broadcastable_problems()
    large_problems = LARGE
    claims = [  # only operands whose axis 0 is that of the output may carry samples
        (Problem((np.ones(x), np.ones(y)), {}, carries), claim)
        for x, y, carries, claim in (
            ((4, 3), (4, 3), (True, True), "map"),
            ((4, 3), (3,), (True, False), "map"),
            ((1, 3), (4, 3), (False, True), "map"),
            ((4, 3), (4, 3), (True, False), None),  # the second is cut too
            ((2, 4, 3), (4, 3), (False, True), None),  # samples lie on axis 1
            ((), (), (True, False), None),
        )
    ]
    bad_input = [SHAPES, TEXT, HALF]


class TestSub(OpContract):
    function = staticmethod(tg.sub)
    reference = staticmethod(reference.sub)
    problems = broadcastable_problems()
    large_problems = LARGE
    bad_input = [SHAPES, TEXT, HALF, BOOLS]


class TestMul(OpContract):
    function = staticmethod(tg.mul)
    reference = staticmethod(reference.mul)
    problems = broadcastable_problems()
    large_problems = LARGE
    bad_input = [SHAPES, TEXT, HALF]

    def test_saves_only_what_is_needed(self):
        x, c = tg.Tensor([2.0], requires_grad=True), tg.Tensor([3.0])
        assert tg.mul(x, c).saved[2][0] is None and tg.mul(c, x).saved[2][1] is None


class TestDiv(OpContract):
    function = staticmethod(tg.div)
    reference = staticmethod(reference.div)
    problems = broadcastable_problems(0.5, 2.0)
    large_problems = LARGE
    bad_input = [SHAPES, TEXT, HALF]

    def test_of_integers(self):
        y = tg.tensor([7, -7]) / tg.tensor([2, 2])
        assert y.dtype == np.float32
        np.testing.assert_array_equal(y.value, [3.5, -3.5])


class TestPow(OpContract):
    function = staticmethod(tg.pow)
    reference = staticmethod(reference.power)
    problems = broadcastable_problems(0.5, 2.0)
    large_problems = LARGE
    bad_input = [
        SHAPES,
        TEXT,
        HALF,
        BOOLS,
        Bad("negative", (np.array([2]), -1), {}, ArgumentError, "pow: y: expected exponents of 0"),
        Bad("negatives", (2, np.array([1, -2])), {}, ArgumentError, "x.astype('float64')"),
    ]

    @pytest.mark.parametrize("exponent", [-1, 0, 1, 2, 3])
    def test_whole_exponents_of_any_base(self, exponent):
        x = np.array([-1.5, -0.3, 0.7, 2.0])
        expected = [v**exponent for v in x.tolist()]
        np.testing.assert_allclose((tg.Tensor(x) ** exponent).value, expected, rtol=1e-14)
        assert tg.testing.gradcheck(lambda t: t**exponent, [x]).ok

    def test_whole_exponents_of_integers(self):
        y = tg.tensor([-3, 2]) ** 3
        assert y.dtype == np.int64 and y.value.tolist() == [-27, 8]
        assert (tg.tensor([-3, 2]) ** 2).value.tolist() == [9, 4]

    def test_exponent_with_more_axes_than_the_base(self):
        y = tg.Tensor([1.0, 3.0]) ** np.full((1, 1), 2, np.float32)
        assert y.value.tolist() == [[1, 9]]

    def test_gradients_at_zero(self):
        """d/dx = 0 where p = 0; d/dp = 0 where x = 0 and p >= 0, for 0 ** p is constant there."""
        x = tg.Tensor([0.0, 0.0, 0.0, 2.0], requires_grad=True)
        p = tg.Tensor([0.0, 1.0, 2.0, 0.0], requires_grad=True)
        y = x**p
        np.testing.assert_array_equal(y.value, [1, 0, 0, 1])
        y.backward(np.ones(4))
        np.testing.assert_array_equal(x.grad, [0, 1, 0, 0])
        np.testing.assert_allclose(p.grad, [0, 0, 0, np.log(2)], rtol=1e-6)

    def test_a_single_exponent_of_zero(self):
        x = tg.Tensor([0.0, 2.0], requires_grad=True)
        (x**0).backward(np.ones(2))
        np.testing.assert_array_equal(x.grad, [0, 0])


class TestMaximum(OpContract):
    function = staticmethod(tg.maximum)
    reference = staticmethod(reference.maximum)
    problems = without_ties
    large_problems = LARGE
    bad_input = [SHAPES, TEXT, HALF]


class TestMinimum(OpContract):
    function = staticmethod(tg.minimum)
    reference = staticmethod(reference.minimum)
    problems = without_ties
    large_problems = LARGE
    bad_input = [SHAPES, TEXT, HALF]


@pytest.mark.parametrize("function", [tg.maximum, tg.minimum])
class TestTiesAndNaN:
    def test_a_gradient_that_is_not_finite_stays_on_its_side(self, function):
        x, y = (tg.Tensor([v, -v], requires_grad=True) for v in (1.0, 2.0))
        function(x, y).backward([np.nan, np.inf])
        chosen = (x, y) if function is tg.minimum else (y, x)
        np.testing.assert_array_equal(chosen[0].grad, [np.nan, 0])
        np.testing.assert_array_equal(chosen[1].grad, [0, np.inf])


def test_one_node_as_both_operands():
    x = tg.Tensor([3.0], requires_grad=True)
    for y, slope in ((x + x, 2), (x - x, 0), (x * x, 6), (x / x, 0), (tg.maximum(x, x), 1)):
        x.grad = None
        y.backward()
        assert x.grad.tolist() == [slope]


@pytest.mark.parametrize("name", ["add", "sub", "mul", "maximum", "minimum", "pow"])
def test_integers_are_exact_and_never_differentiable(name):
    big = 2**53 + 1  # a float64 cannot hold it
    y = getattr(tg, name)(tg.tensor([big]), 1)
    exact = {"add": big + 1, "sub": big - 1, "mul": big, "maximum": big, "minimum": 1, "pow": big}
    assert y.dtype == np.int64 and y.item() == exact[name] and not y.requires_grad


def test_bools_as_in_numpy():
    t, f = tg.tensor([True, True]), tg.tensor([True, False])
    for y, expected in (
        (t + f, [True, True]),
        (t * f, [True, False]),
        (tg.maximum(t, f), [True, True]),
        (tg.minimum(t, f), [True, False]),
    ):
        assert y.dtype == bool and y.value.tolist() == expected
    assert (t - 1).dtype == np.int64 and (t / f).dtype == np.float32


@pytest.mark.parametrize("name", ["add", "sub", "mul", "maximum", "minimum", "pow"])
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "uint64"])
def test_kernel_of_integers(kernel_device, name, dtype):
    """Modulo 2^bits, as in numpy."""
    limits = np.iinfo(dtype)
    x = np.array([[limits.min], [limits.max], [3]], dtype)
    y = np.array([0, 1, 5, limits.max if name != "pow" else 7], dtype)
    z = getattr(tg, name)(tg.Tensor(x, device=kernel_device), y)
    expected = getattr(tg, name)(x, y)
    assert z.dtype == dtype and z.numpy().tolist() == expected.value.tolist()


@pytest.mark.parametrize("name", ["add", "mul", "maximum", "minimum"])
def test_kernel_of_bools(kernel_device, name):
    x, y = np.array([[True], [False]]), np.array([True, False])
    z = getattr(tg, name)(tg.Tensor(x, device=kernel_device), y)
    assert z.dtype == bool and z.numpy().tolist() == getattr(tg, name)(x, y).value.tolist()


@pytest.mark.parametrize("name", ALL)
def test_kernel_at_the_edges(kernel_device, name):
    """Values and slopes of numpy, in pairs of zeros, infinities, NaN and negative numbers."""
    edges = np.array([0.0, 1.0, 2.0, -1.5, np.inf, -np.inf, np.nan], np.float32)
    x, y = (a.ravel() for a in np.meshgrid(edges, edges))
    results = []
    for device in ("cpu", kernel_device):
        leaves = [tg.Tensor(a, requires_grad=True, device=device) for a in (x, y)]
        with np.errstate(all="ignore"):
            z = getattr(tg, name)(*leaves)
            z.backward(np.linspace(-3, 4, 49, dtype=np.float32))
        results.append([z.numpy(), *(leaf.device.to_numpy(leaf.grad) for leaf in leaves)])
    for expected, got in zip(*results, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5)


@pytest.mark.parametrize("what", [None, "2"])
def test_what_is_no_operand(what):
    for compute in (lambda x: x + what, lambda x: what + x, lambda x: x.add(what)):
        with pytest.raises(DtypeError, match=f"add: an operand: expected .*, got {what!r}. Way"):
            compute(tg.ones(2))
    with pytest.raises(DtypeError, match="matmul: an operand"):
        tg.ones(2) @ what


@pytest.mark.parametrize("number", [300, -1])
def test_a_number_that_the_dtype_cannot_hold(number):
    with pytest.raises(ArgumentError, match="one that uint8 can hold"):
        tg.Tensor([1], dtype="uint8") + number


def test_a_number_beyond_the_range_of_a_float_is_infinite():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (tg.Tensor([1.0]) * 1e300).item() == np.inf


def test_unbroadcast():
    mem, g = eager_memory((True,)), np.arange(24.0).reshape(2, 3, 4)
    assert unbroadcast(mem, g, (2, 3, 4)) is g
    assert unbroadcast(mem, g, (3, 1)).tolist() == [[60], [92], [124]]
    assert unbroadcast(mem, g, ()).shape == () and unbroadcast(mem, g, ()) == 276
