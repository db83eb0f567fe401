"""where against Python's `a if condition else b`, for every dtype, and what must not leak."""

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import broadcastable_problems
from tinygraph.base.errors import DtypeError, ShapeError

TRUE = np.array([True, False])


@st.composite
def choices(draw):
    problem = draw(broadcastable_problems(count=3))
    condition, *branches = problem.args
    return problem._replace(args=(condition > 0, *branches))


class TestWhere(OpContract):
    function = staticmethod(tg.where)
    reference = staticmethod(reference.where)
    problems = choices()
    large_problems = (
        Problem((np.arange(45) % 3 == 0, np.sin(np.arange(900.0)).reshape(20, 45), np.ones(()))),
        Problem((np.arange(700).reshape(700, 1) % 2 == 0, np.ones((1, 3)), np.ones((700, 1)))),
        Problem((np.ones((2, 1, 2, 1, 2, 1, 2, 1)) > 0, np.ones((1, 3) * 4), np.ones(3))),
    )  # several blocks, and more axes than a kernel takes
    bad_input = [
        Bad("condition", (np.ones(2), 1.0, 2.0), {}, DtypeError, "where: condition: expected bool"),
        Bad("shapes", (TRUE, np.ones(3), 2.0), {}, ShapeError, "(2,) and (3,)"),
        Bad("float16", (TRUE, np.ones(2, "f2"), np.ones(2, "f2")), {}, DtypeError, "got float16"),
        Bad("text", (TRUE, "ab", 1.0), {}, DtypeError, "expected"),
    ]

    def test_a_safe_logarithm(self):
        """The usual way round log(0): a second where keeps the bad value out of the first."""
        x = tg.Tensor([0.0, 2.0], requires_grad=True)
        y = tg.where(x > 0, tg.log(tg.where(x > 0, x, 1.0)), 0.0)
        y.backward(np.ones(2))
        assert x.grad.tolist() == [0, 0.5]

    @pytest.mark.parametrize("dtype", "fdbhilqBHILQ?")
    def test_every_dtype_exactly(self, dtype):
        a, b = np.array([0, 1, 1], dtype), np.array([1, 0, 1], dtype)
        if dtype not in "fd?":
            a[0], b[1] = np.iinfo(dtype).max, np.iinfo(dtype).min
        condition = np.array([True, False, True])
        y = tg.where(condition, a, b)
        assert y.dtype == np.dtype(dtype) and y.value.tolist() == np.where(condition, a, b).tolist()

    @pytest.mark.parametrize("dtype", ["uint8", "int16", "uint32", "int64", "bool"])
    def test_kernel_of_integers_and_bools(self, kernel_device, dtype):
        ends = [False, True] if dtype == "bool" else [np.iinfo(dtype).min, np.iinfo(dtype).max]
        a = np.array(ends, dtype)
        b = tg.Tensor(a[::-1].copy(), device=kernel_device)
        y = tg.where(np.array([[True], [False]]), a, b)
        assert y.dtype == dtype and y.numpy().tolist() == [ends, ends[::-1]]

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_nothing_leaks_from_the_branch_not_taken(self, device, dtype):
        values = np.array([-0.0, np.inf, np.nan, 1e-40], dtype)
        a = tg.Tensor(values, requires_grad=True, device=device)
        b = tg.Tensor(-values, requires_grad=True, device=device)
        y = tg.where(np.array([[True], [False]]), a, b)
        assert y.numpy().tobytes() == np.stack([values, -values]).tobytes()
        y.backward(np.array([[1, 2, 3, 4], [np.nan, np.inf, -np.inf, 5]], dtype))
        grads = [x.device.to_numpy(x.grad) for x in (a, b)]
        np.testing.assert_array_equal(grads, [[1, 2, 3, 4], [np.nan, np.inf, -np.inf, 5]])

    def test_numbers_do_not_promote(self):
        x = tg.Tensor([1.0, 2.0])
        assert tg.where(x > 1, x, 0).dtype == np.float32
        assert tg.where(TRUE, 1.0, 2).dtype == np.float32
        assert tg.where(TRUE, 1, 2).dtype == np.int64
        assert tg.where(TRUE, x, np.zeros(2)).dtype == np.float64
