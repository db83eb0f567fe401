"""matmul against three loops, for vectors, matrices and stacks that broadcast."""

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import numbers, seeds, shapes
from tinygraph.errors import DtypeError, ShapeError


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


X, W = np.ones((5, 2, 3)), np.ones((5, 3, 4))


class TestMatmul(OpContract):
    function = staticmethod(tg.matmul)
    reference = staticmethod(reference.matmul)
    problems = products()
    tolerance = 4.0
    bad_input = [
        Bad("number", (X, 2.0), {}, ShapeError, "matmul: w: expected at least one axis"),
        Bad("number left", (2.0, W), {}, ShapeError, "multiply by a single number with *"),
        Bad("inner", (X[0], W[0].T), {}, ShapeError,
            "w: expected 3 elements on axis 0, as on the last axis of x, got 4: "
            "x.shape (2, 3), w.shape (4, 3)"),
        Bad("stacks", (X, W[:, :2]), {}, ShapeError, "3 elements on axis 1"),
        Bad("vectors", (np.ones(3), np.ones(2)), {}, ShapeError, "3 elements on axis 0"),
        Bad("batch", (X, W[:2]), {}, ShapeError,
            "batch axes, all but the last two, that broadcast together, got (5,) and (2,): "
            "x.shape (5, 2, 3), w.shape (2, 3, 4)"),
        Bad("float16", (X.astype("f2"), W.astype("f2")), {}, DtypeError, "got float16"),
        Bad("text", (X, "ab"), {}, DtypeError, "expected"),
    ]  # fmt: skip

    @pytest.mark.parametrize("x, w, y", [
        ((3,), (3,), ()), ((3,), (3, 4), (4,)), ((2, 3), (3,), (2,)),
        ((5, 2, 3), (3,), (5, 2)), ((3,), (5, 3, 4), (5, 4)),
        ((5, 1, 2, 3), (6, 3, 4), (5, 6, 2, 4)),
        ((0, 3), (3, 4), (0, 4)), ((2, 0), (0, 4), (2, 4)), ((0, 2, 3), (3, 4), (0, 2, 4)),
        ((5, 0, 3), (3,), (5, 0)), ((0,), (0,), ()), ((4, 2, 0), (0, 3), (4, 2, 3)),
    ])  # fmt: skip
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
        x = tg.Tensor([[2**53 + 1, 1]])
        assert (x @ np.array([1, 0])).value.tolist() == [2**53 + 1]
        assert (x.astype("int32") @ x.T).dtype == np.int64
        t = tg.Tensor([[True, False], [True, True]])
        assert (t @ t).value.tolist() == [[True, False], [True, True]]

    def test_promotes(self):
        x = tg.Tensor(np.ones((2, 2), "f4"), requires_grad=True)
        y = np.ones((2, 2)) @ x
        assert isinstance(y, tg.Tensor) and y.dtype == np.float64
        y.backward(np.ones((2, 2)))
        assert x.grad.dtype == np.float32

    def test_claims(self):
        def claim(x, w, *carries):
            specs = tuple(tg.Spec(shape, np.dtype("f4")) for shape in (x, w))
            return tg.matmul([1.0], [1.0]).op.batch(specs, carries)

        assert claim((5, 3), (3, 4), True, False) == "map"
        assert claim((5, 3), (3,), True, False) == "map"
        assert claim((5, 3), (3, 4), False, True) is None
        assert claim((5, 5), (5, 5), True, True) is None
        assert claim((3,), (3, 4), True, True) == "sum"
        assert claim((5, 2, 3), (5, 3, 4), True, True) == "map"
        assert claim((5, 2, 3), (5, 3, 4), True, False) is None
        assert claim((5, 2, 3), (1, 3, 4), True, False) == "map"
        assert claim((5, 3), (6, 3, 4), True, False) is None
