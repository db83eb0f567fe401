"""gather against loops: every axis, repeated and bad indices, every integer dtype."""

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import numbers, seeds, shapes
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError

X = np.arange(6.0).reshape(2, 3)
ARRAYS = ("x", "indices")  # the axis stands between them


@st.composite
def gather_problems(draw):
    """An array, and indices that repeat, leave out, or are none.

    The samples are on axis 0 of both, but where it is the axis of the indices: there x is whole.
    """
    shape = draw(shapes(min_dims=1))
    axis = draw(st.integers(0, len(shape) - 1))
    count = draw(st.integers(0 if axis else 1, 4))
    own = [n - draw(st.integers(0, 1)) if i and n > 1 else n for i, n in enumerate(shape)]
    own[axis] = count
    indices = np.random.default_rng(draw(seeds)).integers(0, shape[axis], own)
    indices = indices.astype(draw(st.sampled_from(["i1", "i4", "i8", "u1", "u8"])))
    kwargs = {"axis": axis - len(shape) * draw(st.booleans())}
    return Problem((numbers(draw(seeds), shape), indices), kwargs, (axis > 0, True), names=ARRAYS)


class TestGather(OpContract):
    function = staticmethod(tg.gather)
    reference = staticmethod(reference.gather)
    problems = gather_problems()
    large_problems = (
        Problem(
            (numbers(0, (40, 7, 2)), np.random.default_rng(1).integers(0, 7, (40, 5, 2))),
            {"axis": 1},
            names=ARRAYS,
        ),
        Problem(
            (numbers(2, (5, 9)), np.random.default_rng(3).integers(0, 5, (60, 9))),
            {"axis": 0},
            names=ARRAYS,
        ),
    )
    claims = [
        (Problem((X, np.zeros((2, 3), int)), {"axis": axis}, carries, names=ARRAYS), claim)
        for axis, carries, claim in (
            (1, (True, True), "map"),
            (-1, (True, True), "map"),
            (0, (True, True), None),
            (0, (False, True), "map"),
            (-2, (True, False), None),
            (1, (False, True), None),
            (1, (True, False), None),
        )
    ]
    bad_input = [
        Bad(
            "too large",
            (X, 1, [[0], [3]]),
            {},
            ArgumentError,
            "numbers from 0 to 2, the positions along axis 1 of x, got 3 at index (1, 0)",
        ),
        Bad("negative", (X, 0, [[0, 0, -1]]), {}, ArgumentError, "got -1 at index (0, 2)"),
        Bad("huge", (X, 1, np.full((2, 1), 2**64 - 1, "u8")), {}, ArgumentError, str(2**64 - 1)),
        Bad(
            "empty axis",
            (X[:, :0], 1, [[0], [0]]),
            {},
            ArgumentError,
            "none, for x of shape (2, 0) has no element there, got 0 at index (0, 0)",
        ),
        Bad("swapped", ([[0], [1]], 1, X), {}, DtypeError, "x comes first, then the indices"),
        Bad("bools", (X, 1, X > 1), {}, DtypeError, "indices: expected integers, got bool"),
        Bad("rank", (X, 1, [0, 1]), {}, ShapeError, "tg.unsqueeze"),
        Bad(
            "larger",
            (X, 1, [[0], [0], [0]]),
            {},
            ShapeError,
            "at most the sizes of x, (2, 3), on every axis but 1, got shape (3, 1)",
        ),
        Bad("axis", (X, 2, [[0], [1]]), {}, ShapeError, "an axis from -2 to 1"),
        Bad("0-d", (1.0, 0, 0), {}, ShapeError, "no axis: the input is 0-d"),
        Bad("float axis", (X, 1.0, [[0], [1]]), {}, DtypeError, "axis: expected an int, got 1.0"),
    ]

    @pytest.mark.parametrize("count", [3, 63])
    def test_repeated_indices_add_up_in_order(self, device, count):
        """In float32, 1 + 1e8 - 1e8 is 0 from left to right; another order would give 1."""
        x = tg.Tensor(np.zeros((1, 2), np.float32), requires_grad=True, device=device)
        g = np.zeros((1, count), np.float32)
        g[0, [0, count // 3, count - 1]] = 1, 1e8, -1e8
        tg.gather(x, 1, [[1] * count]).backward(g)
        assert x.device.to_numpy(x.grad).tolist() == [[0, 0]]

    def test_many_repeated_indices(self, device):
        """Against numpy's count of weights in bins; and twice the same bits."""
        rng = np.random.default_rng(0)
        indices, g = rng.integers(0, 7, 5000), rng.standard_normal(5000)
        grads = []
        for _ in range(2):
            x = tg.Tensor(np.zeros(7), requires_grad=True, device=device)
            tg.gather(x, 0, indices).backward(g)
            grads.append(x.device.to_numpy(x.grad))
        np.testing.assert_allclose(grads[0], np.bincount(indices, g, 7), rtol=1e-12)
        assert grads[0].tobytes() == grads[1].tobytes()

    def test_indices_are_an_input_that_can_be_fed(self):
        x = tg.Tensor(X, requires_grad=True)
        at = tg.tensor([[0], [0]], name="at")
        graph = tg.Graph(tg.gather(x, 1, at))
        (y,) = graph.forward({"at": np.array([[2, 1], [0, 0]])})
        assert y.value.tolist() == [[2, 1], [3, 3]]
        graph.backward([np.array([[1.0, 2.0], [3.0, 4.0]])])
        assert x.grad.tolist() == [[0, 2, 1], [7, 0, 0]]
        with pytest.raises(ArgumentError, match=r"got 3 at index \(1, 0\)"):
            graph.forward({"at": np.array([[2], [3]])})

    def test_smaller_indices_leave_the_end_of_x_out(self, device):
        x = tg.Tensor(X, requires_grad=True, device=device)
        y = tg.gather(x, 1, [[2, 0, 2, 2]])
        y.backward([[1.0, 2.0, 4.0, 8.0]])
        assert y.numpy().tolist() == [[2, 0, 2, 2]]
        assert x.device.to_numpy(x.grad).tolist() == [[2, 0, 13], [0, 0, 0]]

    def test_integers_and_bools(self, device):
        y = tg.gather(tg.Tensor(X > 2, device=device), 1, [[0], [2]])
        assert y.numpy().tolist() == [[False], [True]]
        y = tg.gather(tg.Tensor(X.astype("i2"), device=device), 0, [[1, 0, 1]])
        assert y.dtype == np.int16 and y.numpy().tolist() == [[3, 1, 5]]
