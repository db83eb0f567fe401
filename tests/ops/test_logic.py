"""Operations on bits against Python's, of integers of every width and of bools."""

import operator

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.strategies import broadcastable_problems, elementwise_problems
from tinygraph.base.errors import DtypeError, ShapeError

DTYPES = ["bool", "i1", "u1", "i4", "i8", "u8"]
LARGE = Problem((np.arange(700).reshape(350, 2) % 5, np.arange(2)))  # two blocks


@st.composite
def whole(draw, problems):
    problem, dtype = draw(problems), draw(st.sampled_from(DTYPES))
    arrays = [np.round(np.abs(a) if dtype[0] == "u" else a).astype(dtype) for a in problem.args]
    return problem._replace(args=tuple(arrays))


def joined(function):
    """A reference for a function of two Python numbers."""

    def loops(x, y):
        shape = np.broadcast_shapes(np.shape(x), np.shape(y))
        pairs = zip(*(np.broadcast_to(a, shape).ravel().tolist() for a in (x, y)), strict=True)
        dtype = np.result_type(x, y) if function in SIGNS else bool
        return np.array([function(a, b) for a, b in pairs], dtype).reshape(shape)

    return staticmethod(loops)


SIGNS = (operator.and_, operator.or_, operator.xor)


class Bitwise:
    """What the contracts of and, or, xor have in common."""

    problems = whole(broadcastable_problems(-100, 100))
    large_problems = (LARGE,)
    differentiable = False
    bad_input = [
        Bad("shapes", (np.ones((2, 3), int), np.ones(2, int)), {}, ShapeError, "(2, 3) and (2,)"),
        Bad("floats", ([1], [1.5]), {}, DtypeError, "x: expected integers or bools, got float32"),
        Bad("nothing", ([1], None), {}, DtypeError, "got None"),
    ]


class TestBitwiseAnd(Bitwise, OpContract):
    function = staticmethod(tg.bitwise_and)
    reference = joined(operator.and_)
    conventions = [Convention("negative", ([-1, -4], [6, 6]), value=[6, 4])]


class TestBitwiseOr(Bitwise, OpContract):
    function = staticmethod(tg.bitwise_or)
    reference = joined(operator.or_)
    conventions = [Convention("negative", ([-1, -4], [6, 6]), value=[-1, -2])]


class TestBitwiseXor(Bitwise, OpContract):
    function = staticmethod(tg.bitwise_xor)
    reference = joined(operator.xor)
    conventions = [Convention("negative", ([-1, -4], [6, 6]), value=[-7, -6])]


class TestBitwiseNot(OpContract):
    function = staticmethod(tg.bitwise_not)
    reference = staticmethod(
        lambda x: (
            reference.elementwise(lambda v: not v, x).astype(bool)
            if x.dtype == bool
            else np.array([v ^ -1 for v in x.ravel().tolist()]).astype(x.dtype).reshape(x.shape)
        )
    )
    problems = whole(elementwise_problems(-100, 100))
    differentiable = False
    conventions = [Convention("0 and -1", ([0, -1],), value=[-1, 0])]
    bad_input = [Bad("floats", ([1.0],), {}, DtypeError, "x: expected integers or bools")]


class Logical:
    """What the contracts of and, or, xor of numbers have in common."""

    problems = whole(broadcastable_problems(-1.4, 1.4))
    large_problems = (LARGE,)
    differentiable = False
    bad_input = [
        Bad("shapes", (np.ones((2, 3)), np.ones(2)), {}, ShapeError, "(2, 3) and (2,)"),
        Bad("nothing", ([1], None), {}, DtypeError, "got object"),
    ]


class TestLogicalAnd(Logical, OpContract):
    function = staticmethod(tg.logical_and)
    reference = joined(lambda a, b: bool(a) and bool(b))
    conventions = [Convention("NaN is True", ([np.nan, -0.0], [1.0, 1.0]), value=[True, False])]


class TestLogicalOr(Logical, OpContract):
    function = staticmethod(tg.logical_or)
    reference = joined(lambda a, b: bool(a) or bool(b))
    conventions = [Convention("NaN is True", ([np.nan, -0.0], [0.0, 0.0]), value=[True, False])]


class TestLogicalXor(Logical, OpContract):
    function = staticmethod(tg.logical_xor)
    reference = joined(lambda a, b: bool(a) is not bool(b))
    conventions = [Convention("NaN is True", ([np.nan, -0.0], [1.0, 1.0]), value=[False, True])]


class TestLogicalNot(OpContract):
    function = staticmethod(tg.logical_not)
    reference = staticmethod(
        lambda x: np.array([not v for v in x.ravel().tolist()], bool).reshape(x.shape)
    )
    problems = whole(elementwise_problems(-1.4, 1.4))
    differentiable = False
    conventions = [Convention("NaN is True", ([np.nan, -0.0],), value=[False, True])]
    bad_input = [Bad("text", (["a"],), {}, DtypeError, "expected")]


@pytest.mark.parametrize("sign", SIGNS, ids=lambda f: f.__name__)
def test_operators_on_both_sides(sign):
    a, b = np.array([True, False, True]), np.array([True, True, False])
    for y in (sign(tg.Tensor(a), tg.Tensor(b)), sign(a, tg.Tensor(b)), sign(tg.Tensor(a), b)):
        assert type(y) is tg.Tensor and y.dtype == bool and not y.requires_grad
        np.testing.assert_array_equal(y.value, sign(a, b))
    assert sign(tg.tensor([12]), 10).item() == sign(12, 10) == sign(12, tg.tensor([10])).item()


def test_masks_are_combined():
    x = tg.Tensor([-1.0, 0.5, 2.0])
    mask = (x > 0) & ~(x > 1)
    mask |= x < -0.5
    assert mask.tolist() == [True, True, False]


def test_all_bits_of_unsigned_integers():
    assert (~tg.Tensor([0, 255], dtype="uint8")).tolist() == [255, 0]
