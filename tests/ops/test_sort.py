"""sort, argsort and topk against Python's sorted: ties, NaN, integers, long lines."""

import math

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests.op_contract import Bad, Convention, OpContract, Problem, claims_of
from tests.strategies import seeds, shapes
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError

X = np.arange(6.0).reshape(2, 3)
NAN = math.nan


def argsort(x, axis=-1, descending=False):
    """By Python's own sort, which is stable; a NaN is larger than infinity."""
    order = np.empty(x.shape, np.int64)
    lines, places = np.moveaxis(x, axis, -1), np.moveaxis(order, axis, -1)
    for at in np.ndindex(lines.shape[:-1]):
        line = [(v != v, 0 if v != v else v) for v in lines[at].tolist()]
        if descending:
            line = [(not nan, -v) for nan, v in line]
        places[at] = sorted(range(len(line)), key=line.__getitem__)
    return order


def sort(x, axis=-1, descending=False):
    return np.take_along_axis(x, argsort(x, axis, descending), axis)


def topk(x, k, axis=-1, largest=True):
    return np.take(sort(x, axis, largest), range(k), axis)


@st.composite
def lines(draw, word="descending", k=False):
    """An array without equal elements, so that its order does not jump, and an axis."""
    shape = draw(shapes(min_dims=1))
    size = math.prod(shape)
    x = np.random.default_rng(draw(seeds)).permutation(size) - 0.5 * size
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    kwargs = {"axis": axis, word: draw(st.booleans())}
    kwargs |= {"k": draw(st.integers(0, shape[axis]))} if k else {}
    return Problem((x.reshape(shape),), kwargs, (True,))


def large(**kwargs):
    rng = np.random.default_rng(0)
    return tuple(
        Problem((rng.permutation(math.prod(shape)).reshape(shape) - 0.5,), {"axis": axis, **kwargs})
        for shape, axis in (((9, 60), 1), ((40, 3, 5), 0), ((700,), 0))
    )


MANY_EQUAL = tuple(
    Problem((np.arange(300.0).reshape(3, 100) % 7,), {"axis": 1, "descending": descending})
    for descending in (False, True)
)
BAD = [
    Bad("axis", (X,), {"axis": 2}, ShapeError, "an axis from -2 to 1, got 2"),
    Bad("0-d", (1.0,), {"axis": 0}, ShapeError, "no axis: the input is 0-d"),
    Bad("None", (X,), {"axis": None}, DtypeError, "axis: expected an int, got None"),
    Bad("float16", (X.astype("f2"),), {"axis": 0}, DtypeError, "got float16"),
]


class TestArgsort(OpContract):
    function = staticmethod(tg.argsort)
    reference = staticmethod(argsort)
    differentiable = False
    problems = lines()
    large_problems = (*large(descending=True), *MANY_EQUAL)
    claims = claims_of(X, "axis", (1, "map"), (-1, "map"), (0, None))
    conventions = [
        Convention("equal", ([2.0, 1.0, 2.0, 1.0],), [1, 3, 0, 2]),
        Convention("down", ([1.0, 2.0, 1.0, 2.0],), [1, 3, 0, 2], kwargs={"descending": True}),
        Convention("NaN", ([NAN, np.inf, NAN, -np.inf],), [3, 1, 0, 2]),
        Convention("NaN down", ([0.0, NAN, 1.0, NAN],), [1, 3, 2, 0], kwargs={"descending": True}),
        Convention("zeros", ([0.0, -0.0],), [0, 1]),
    ]
    bad_input = BAD

    @pytest.mark.parametrize("dtype", ["int8", "int64", "uint64", "bool"])
    def test_integers(self, dtype, device):
        x = np.array([[2, 0, 1, 2, 0]]).astype(dtype)
        if dtype == "uint64":
            x[0, 2] = 2**63 + 1
        for descending in (False, True):
            order = tg.argsort(tg.Tensor(x, device=device), descending=descending)
            expected = argsort(x.astype(object) * 1, descending=descending)
            assert order.dtype == np.int64 and order.value.tolist() == expected.tolist()


class Values:
    """A function that gives values and indices: the contract looks at the values."""

    def apply(self, problem, nodes):
        return self.function(*nodes, **problem.kwargs).values


class TestSort(Values, OpContract):
    function = staticmethod(tg.sort)
    reference = staticmethod(sort)
    problems = lines()
    large_problems = large()
    conventions = [
        Convention("equal", ([2.0, 1.0, 2.0],), [1, 2, 2], ([1, 1, 1],)),
        Convention("NaN", ([NAN, 1.0],), [1, NAN], ([1, 1],)),
    ]
    bad_input = BAD

    def test_the_gradient_goes_where_the_elements_stood(self, device):
        x = tg.Tensor([3.0, 1.0, 2.0], requires_grad=True, device=device)
        values, indices = x.sort(descending=True)
        values.backward([10.0, 20.0, 30.0])
        assert indices.value.tolist() == [0, 2, 1] and not indices.requires_grad
        assert x.grad.tolist() == [10, 30, 20]


class TestTopk(Values, OpContract):
    function = staticmethod(tg.topk)
    reference = staticmethod(topk)
    problems = lines("largest", k=True)
    large_problems = large(k=3)
    conventions = [
        Convention("equal", ([1.0, 3.0, 3.0],), [3.0], ([0, 1, 0],), {"k": 1}),
        Convention("NaN", ([1.0, NAN],), [NAN], ([0, 1],), {"k": 1}),
        Convention("none", ([1.0],), [], ([0],), {"k": 0}),
    ]
    bad_input = [
        Bad("too many", (X, 4), {}, ArgumentError, "topk: k: expected an int from 0 to 3"),
        Bad("negative", (X, -1), {}, ArgumentError, "topk: k: expected an int of at least 0"),
        Bad("axis", (X, 1, 2), {}, ShapeError, "an axis from -2 to 1, got 2"),
    ]

    def test_indices_and_words(self, device):
        x = tg.Tensor([[1.0, 5.0, 3.0], [9.0, 7.0, 8.0]], device=device)
        assert tg.topk(x, 2).indices.value.tolist() == [[1, 2], [0, 2]]
        found = x.topk(1, dim=0, largest=False, sorted=False)
        assert found.indices.value.tolist() == [[0, 0, 0]]
        assert found.values.value.tolist() == [[1, 5, 3]]
