"""matmul against three loops, for vectors, matrices and stacks that broadcast."""

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import numbers, seeds, shapes
from tinygraph.base.errors import DtypeError, ShapeError
from tinygraph.engine.memory import eager_memory
from tinygraph.ops.products.gemm import Axis, _product, gemm


@st.composite
def products(draw):
    """x and w with batch axes that broadcast, or without, or vectors; either has samples."""
    k, sides = draw(st.integers(1, 3)), st.integers(1, 3)
    full = draw(shapes(max_dims=2, max_side=3))
    operands = []
    for last in ((draw(sides), k), (k, draw(sides))):
        batch = tuple(1 if draw(st.integers(0, 3)) == 0 else n for n in full)
        batch = batch[draw(st.integers(0, len(batch))) :]
        vector = draw(st.integers(0, 3)) == 0
        shape = (k,) if vector else (*batch, *last)
        operands.append(numbers(draw(seeds), shape))
    carries = draw(st.sampled_from([(True, False), (False, True), (True, True)]))
    samples = {len(a) for a, carried in zip(operands, carries, strict=True) if carried}
    return Problem(tuple(operands), {}, carries if len(samples) == 1 else None)


def large(x_shape, w_shape):
    return Problem((numbers(1, x_shape), numbers(2, w_shape)))


X, W = np.ones((5, 2, 3)), np.ones((5, 3, 4))


class TestMatmul(OpContract):
    function = staticmethod(tg.matmul)
    reference = staticmethod(reference.matmul)
    problems = products()
    tolerance = 4.0
    large_problems = (
        large((70, 33), (33, 67)),  # register tiles with edges on all sides, several steps of k
        large((68, 36), (36, 72)),  # rows that begin on 16 bytes
        large((2, 15, 37), (37, 13)),  # the shared tile, and one long sum for gw
        large((2, 1, 3, 1, 5, 2), (1, 2, 1, 3, 2, 4)),  # more axes than one launch knows
        large((800, 4, 3), (3, 2)),  # gw: a sum that is cut into chunks
        large((2500, 3), (3,)),
    )
    claims = [
        (Problem((np.ones(x), np.ones(w)), {}, carries), claim)
        for x, w, carries, claim in (
            ((5, 3), (3, 4), (True, False), "map"),
            ((5, 3), (3,), (True, False), "map"),
            ((5, 3), (3, 4), (False, True), None),
            ((5, 5), (5, 5), (True, True), None),
            ((3,), (3, 4), (True, True), "sum"),
            ((5, 2, 3), (5, 3, 4), (True, True), "map"),
            ((5, 2, 3), (5, 3, 4), (True, False), None),
            ((5, 2, 3), (1, 3, 4), (True, False), "map"),
        )
    ]
    bad_input = [
        Bad("number", (X, 2.0), {}, ShapeError, "matmul: w: expected at least one axis"),
        Bad("number left", (2.0, W), {}, ShapeError, "multiply by a single number with *"),
        Bad(
            "inner",
            (X[0], W[0].T),
            {},
            ShapeError,
            "w: expected 3 elements on axis 0, as on the last axis of x, got 4: "
            "x.shape (2, 3), w.shape (4, 3)",
        ),
        Bad("stacks", (X, W[:, :2]), {}, ShapeError, "3 elements on axis 1"),
        Bad("vectors", (np.ones(3), np.ones(2)), {}, ShapeError, "3 elements on axis 0"),
        Bad(
            "batch",
            (X, W[:2]),
            {},
            ShapeError,
            "batch axes, all but the last two, that broadcast together, got (5,) and (2,): "
            "x.shape (5, 2, 3), w.shape (2, 3, 4)",
        ),
        Bad("float16", (X.astype("f2"), W.astype("f2")), {}, DtypeError, "got float16"),
        Bad("text", (X, "ab"), {}, DtypeError, "expected"),
    ]

    @pytest.mark.parametrize(
        "x, w, y",
        [
            ((3,), (3,), ()),
            ((3,), (3, 4), (4,)),
            ((2, 3), (3,), (2,)),
            ((5, 2, 3), (3,), (5, 2)),
            ((3,), (5, 3, 4), (5, 4)),
            ((5, 1, 2, 3), (6, 3, 4), (5, 6, 2, 4)),
            ((0, 3), (3, 4), (0, 4)),
            ((2, 0), (0, 4), (2, 4)),
            ((0, 2, 3), (3, 4), (0, 2, 4)),
            ((5, 0, 3), (3,), (5, 0)),
            ((0,), (0,), ()),
            ((4, 2, 0), (0, 3), (4, 2, 3)),
        ],
    )
    def test_shapes(self, x, w, y):
        a, b = (tg.Tensor(np.ones(shape), requires_grad=True) for shape in (x, w))
        product = a @ b
        assert product.shape == y
        assert np.all(product.value == x[-1])  # a sum of that many ones
        product.backward(np.ones(y))
        assert a.grad.shape == x and b.grad.shape == w
        used = product.size // max(np.prod(w[:-2] + w[-1:] if len(w) > 1 else ()), 1)
        assert np.all(b.grad == used)  # each element of w meets so many ones of x

    def test_integers_and_bools_as_in_numpy(self):
        x = tg.tensor([[2**53 + 1, 1]])
        assert (x @ np.array([1, 0])).value.tolist() == [2**53 + 1]
        assert (x.astype("int32") @ x.T).dtype == np.int64
        t = tg.tensor([[True, False], [True, True]])
        assert (t @ t).value.tolist() == [[True, False], [True, True]]

    def test_promotes(self):
        x = tg.Tensor(np.ones((2, 2), "f4"), requires_grad=True)
        y = np.ones((2, 2)) @ x
        assert isinstance(y, tg.Tensor) and y.dtype == np.float64
        y.backward(np.ones((2, 2)))
        assert x.grad.dtype == np.float32


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
@pytest.mark.parametrize("m, n, k", [(7, 16, 35), (64, 64, 32), (66, 17, 19), (65, 68, 36)])
def test_gemm_under_the_checker(layout, m, n, k, dtype):
    """Both tiles, each layout, several steps of k; sums that go on in a second product."""
    rng = np.random.default_rng(m)
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((2, m, k), (2, k, n)))
    stored_a = np.ascontiguousarray(a.swapaxes(1, 2) if layout == "tn" else a)
    stored_b = np.ascontiguousarray(b.swapaxes(1, 2) if layout == "nt" else b)
    both, total = np.empty((2, m, n), dtype), np.empty((m, n), dtype)
    steps = Axis(2, m * k, k * n)
    with tg.cuda.checking():
        gemm(layout, stored_a, stored_b, both, m, n, k, batch=[steps])
        gemm(layout, stored_a, stored_b, total, m, n, k, sums=[steps])
    bound = 1e-5 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(both, a @ b, rtol=0, atol=40 * bound)
    np.testing.assert_allclose(total, (a @ b).sum(axis=0), rtol=0, atol=40 * bound)


def test_gemm_adds_launches_up_where_one_does_not_know_all_sums():
    a, b = np.random.default_rng(0).standard_normal((2, 3, 4, 5))  # (S, T, K) each
    a, b = np.ascontiguousarray(a.transpose(1, 0, 2)), b.copy()  # a is (T, S, K)
    c = np.empty((1, 1))
    with tg.cuda.checking():
        gemm("nn", a, b, c, 1, 1, 5, sums=[Axis(3, 5, 20), Axis(4, 15, 5)])
    np.testing.assert_allclose(c[0, 0], np.einsum("tsk,stk->", a, b), rtol=1e-12)


@pytest.mark.parametrize("axes", [{"sums": [Axis(0, 4, 4)]}, {"sums": []}])
def test_gemm_of_an_empty_sum_is_zero(axes):
    c = np.full((2, 2), 7.0)
    k = 0 if axes["sums"] == [] else 2
    gemm("nn", np.ones(4), np.ones(4), c, 2, 2, k, **axes)
    assert not c.any()


@pytest.mark.parametrize("m, n", [(3, 4), (17, 2)])
def test_gemm_of_more_products_than_a_grid_has_blocks(monkeypatch, m, n):
    """Blocks take several products, one after the other; the limit is lowered for the test."""
    monkeypatch.setattr("tinygraph.ops.products.gemm.MOST_BLOCKS", 2)
    _product.cache_clear()
    rng = np.random.default_rng(0)
    a, b, c = rng.standard_normal((5, m, 3)), rng.standard_normal((5, 3, n)), np.empty((5, m, n))
    with tg.cuda.checking():
        gemm("nn", a, b, c, m, n, 3, batch=[Axis(5, m * 3, 3 * n)])
    _product.cache_clear()
    np.testing.assert_allclose(c, a @ b, rtol=1e-12, atol=1e-12)


@pytest.mark.second
@pytest.mark.parametrize("chunks", [1, 5, 64])
def test_a_sum_in_chunks_is_one_sum(chunks):
    """Cut along k, and along an axis of its own, with a rest that fills no chunk."""
    size = 1024 * chunks + 7
    a, b = np.random.default_rng(0).standard_normal((2, size, 2))
    expected, mem = a.T @ b, eager_memory(())
    along_k, along_axis = np.empty((2, 2)), np.empty((2, 2))
    gemm("tn", a, b, along_k, 2, 2, size, mem=mem)
    gemm("tn", a, b, along_axis, 2, 2, 1, sums=[Axis(size, 2, 2)], mem=mem)
    np.testing.assert_allclose(along_k, expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(along_axis, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_kernels_multiply_integers_and_bools_as_numpy(dtype):
    """Also where a product leaves the range of a narrow type, which wraps around."""
    rng = np.random.default_rng(0)
    high = 2 if dtype == "?" else min(np.iinfo(dtype).max, 30_000)
    x, w = (rng.integers(0, high, shape).astype(dtype) for shape in ((3, 4), (2, 4, 17)))
    y = tg.Tensor(x, device="emulator") @ tg.Tensor(w, device="emulator")
    assert y.dtype == dtype
    np.testing.assert_array_equal(y.value, np.matmul(x, w))
