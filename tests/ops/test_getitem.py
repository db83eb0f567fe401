"""getitem against numpy's indexing: every kind of index, repeated positions, what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem, claims_of
from tests.strategies import numbers, seeds, shapes
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError
from tinygraph.ops.shaping.getitem import Getitem, as_index

X = np.arange(6.0).reshape(2, 3)
WHOLE = slice(None)


@st.composite
def slices(draw, size):
    bounds = st.none() | st.integers(-size - 1, size + 1)
    step = draw(st.none() | st.integers(-3, 3).filter(bool))
    return slice(draw(bounds), draw(bounds), step)


@st.composite
def index_problems(draw):
    """One array, and an index with entries of every kind for some of its axes.

    The index arrays broadcast together and name positions several times.
    """
    shape = draw(shapes(max_dims=4))
    joint = draw(shapes(min_dims=1, max_dims=2, min_side=0, max_side=3))
    used = draw(st.integers(0, len(shape)))
    dots = draw(st.integers(0, used)) if draw(st.booleans()) else None
    entries = []
    for k in range(used):
        axis = k if dots is None or k < dots else len(shape) - used + k  # behind the Ellipsis
        size = shape[axis]
        if k == dots:
            entries.append(...)
        if draw(st.integers(0, 4)) == 0:
            entries.append(None)
        kind = draw(st.sampled_from(["slice", "whole", "int", "array", "list"]))
        if kind == "slice":
            entries.append(draw(slices(size)))
        elif kind == "whole":
            entries.append(WHOLE)
        elif kind == "int":
            entries.append(draw(st.integers(-size, size - 1)))
        else:
            own = tuple(1 if draw(st.integers(0, 3)) == 0 else n for n in joint)
            own = own[draw(st.integers(0, len(own) - 1)) :]
            array = np.random.default_rng(draw(seeds)).integers(-size, size, own)
            entries.append(array.tolist() if kind == "list" and array.size else array)
    if dots == used:
        entries.append(...)
    index = entries[0] if len(entries) == 1 and draw(st.booleans()) else tuple(entries)
    return Problem((numbers(draw(seeds), shape),), {"index": index}, (True,) if shape else None)


class TestGetitem(OpContract):
    function = staticmethod(tg.getitem)
    reference = staticmethod(reference.getitem)
    problems = index_problems()
    large_problems = (
        Problem((numbers(0, (30, 20)),), {"index": (WHOLE, np.arange(37) % 20)}),
        Problem((numbers(1, (300, 4)),), {"index": (slice(-1, 10, -3), slice(1, None))}),
    )
    claims = claims_of(
        np.zeros((2, 3, 4, 5)),
        "index",
        ((WHOLE, 0), "map"),
        ((slice(0, None, 1), 0), "map"),
        ((..., 0), "map"),
        ((WHOLE, [1, 0, 0]), "map"),
        ((WHOLE, [0, 1], [1, 0]), "map"),
        ((), "map"),
        ((WHOLE, 0, None, [0, 1]), None),
        ((WHOLE, [0], WHOLE, [0]), None),
        (0, None),
        (None, None),
        (slice(0, 2), None),
        (slice(None, None, -1), None),
        ([0, 1], None),
    )
    bad_input = [
        Bad("mask", (X, X > 2), {}, DtypeError, "a boolean mask"),
        Bad("mask list", (X, [True, False]), {}, DtypeError, "np.nonzero(mask)"),
        Bad("mask tensor", (X, (0, tg.Tensor(X[0] > 2))), {}, DtypeError, "tg.where(mask, x, 0)"),
        Bad("True", (X, True), {}, DtypeError, "a boolean mask"),
        Bad("float", (X, 1.0), {}, DtypeError, "integers, slices, None, Ellipsis"),
        Bad("float array", (X, X[0]), {}, DtypeError, "convert with .astype('int64')"),
        Bad("empty float array", (X, X[:0, 0]), {}, DtypeError, "float64"),
        Bad("word", (X, "rows"), {}, DtypeError, "integers, slices, None, Ellipsis"),
        Bad("ragged", (X, [[0], [0, 1]]), {}, ArgumentError, "a rectangular list"),
        Bad("float bound", (X, slice(0.0, 1)), {}, DtypeError, "a slice of integers"),
        Bad("step 0", (X, slice(None, None, 0)), {}, ArgumentError, "a step other than 0"),
        Bad("two Ellipses", (X, (..., 0, ...)), {}, ArgumentError, "at most one Ellipsis"),
        Bad("too many", (X, (0, 0, 0)), {}, ShapeError, "at most 2 entries for shape (2, 3)"),
        Bad("above", (X, (0, 3)), {}, ShapeError, "size 3, an integer from -3 to 2, got 3"),
        Bad("below", (X, -3), {}, ShapeError, "axis 0 of size 2, an integer from -2 to 1, got -3"),
        Bad("array above", (X, [0, 2]), {}, ShapeError, "axis 0 of size 2"),
        Bad("array below", (X, (WHOLE, [0, -4])), {}, ShapeError, "axis 1 of size 3"),
        Bad("past 64 bits", (X, np.array([2**64 - 1], "u8")), {}, ShapeError, str(2**64 - 1)),
        Bad("empty axis", (X[:0], 0), {}, ShapeError, "axis 0 of size 0, none: it is empty"),
        Bad("arrays", (X, ([0, 1], [0, 1, 2])), {}, ShapeError, "broadcast together"),
    ]

    @pytest.mark.parametrize(
        "index", [0, -1, (0, 1), WHOLE, (None, ..., 1), (slice(None, None, -2), slice(1, 2)), ()]
    )
    def test_basic_indexing_gives_a_view(self, index):
        x = tg.Tensor(X)
        y = x[index]
        assert np.shares_memory(y.value, x.value)
        np.testing.assert_array_equal(y.value, X[index])

    @given(seed=seeds)
    def test_many_repeated_rows(self, seed):
        """Against a product with the matrix of ones where row k takes row index[k]."""
        rng = np.random.default_rng(seed)
        index, g = rng.integers(-7, 7, 500), rng.standard_normal((500, 5))
        x = tg.Tensor(np.zeros((7, 5)), requires_grad=True)
        x[index].backward(g)
        takes = np.zeros((500, 7))
        takes[np.arange(500), index % 7] = 1
        np.testing.assert_allclose(x.grad, takes.T @ g, rtol=1e-12, atol=1e-12)

    @pytest.mark.parametrize("array", [None, [1, 0, 1]])
    @pytest.mark.parametrize("place", [0, 7])
    def test_more_axes_than_a_kernel_takes(self, device, place, array):
        """Every second element of each axis: no two of the eight axes can be merged."""
        x = np.arange(3.0**8).reshape([3] * 8)
        index = [slice(None, None, 2)] * 8
        if array is not None:
            index[place] = array
        node = tg.Tensor(x, requires_grad=True, device=device)
        y = node[tuple(index)]
        np.testing.assert_array_equal(y.numpy(), x[tuple(index)])
        expected = np.zeros_like(x)
        np.add.at(expected, tuple(index), y.numpy())
        y.backward(y.value)
        np.testing.assert_array_equal(node.device.to_numpy(node.grad), expected)

    @pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u8", "f2"])
    def test_every_dtype(self, device, dtype):
        x = np.arange(12).reshape(3, 4).astype(dtype)
        node = tg.Tensor(x, device=device)
        for index in ((slice(None, None, -1), [0, -1, 0]), (1, slice(None, None, 2))):
            y = node[index]
            assert y.dtype == dtype
            np.testing.assert_array_equal(y.numpy(), x[index])

    def test_tensors_as_indices(self):
        x = tg.Tensor(X)
        assert x[tg.tensor([1, 1])].value.tolist() == X[[1, 1]].tolist()
        assert x[tg.tensor(1), tg.tensor(0) : tg.tensor(2)].value.tolist() == [3, 4]
        assert x[np.int64(1), np.array(2)].item() == 5

    def test_the_index_is_copied(self):
        index = np.array([0, 1])
        op = Getitem(as_index(index))
        index[0] = 1
        assert op(X).value.tolist() == X.tolist()

    def test_an_empty_list_takes_nothing(self):
        assert tg.getitem(X, []).shape == (0, 3)

    def test_iteration_ends(self):
        assert [row.value.tolist() for row in tg.Tensor(X)] == X.tolist()

    @pytest.mark.parametrize("index", [(1, slice(0, 2)), ([0, 1], None), ..., -1])
    def test_equal_indices_make_equal_ops(self, index):
        a, b = Getitem(as_index(index)), Getitem(as_index(index))
        assert a == b and hash(a) == hash(b)
        assert a != Getitem(as_index((0, 0))) and a != Getitem(as_index(([1, 0], None)))
        with pytest.raises(AttributeError):
            a.index = ()

    @pytest.mark.parametrize("index", [(1, [0, 1]), [[1, 0]], slice(0, 2)])
    def test_what_it_holds_cannot_be_changed(self, index):
        for entry in as_index(index):
            if hasattr(entry, "array"):
                assert not entry.array.flags.writeable
