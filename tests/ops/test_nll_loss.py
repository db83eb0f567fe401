"""nll_loss against loops: labels of rows and of pixels, ignored labels, reductions."""

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import numbers, reductions, seeds, shapes
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError
from tinygraph.engine.memory import Memory
from tinygraph.ops.losses.nll_loss import NllLoss

X = np.log(np.full((2, 3), 1 / 3))


@st.composite
def label_problems(draw):
    """Log-probabilities and integer labels, some of them perhaps ignored."""
    n, c = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    rest = draw(shapes(max_dims=2, max_side=3))
    labels = np.random.default_rng(draw(seeds)).integers(0, c, (n, *rest))
    kwargs = {"reduction": draw(reductions)}
    if draw(st.booleans()):
        kwargs["ignore_index"] = draw(st.sampled_from([-100, -1, 0, 7]))
        labels[numbers(draw(seeds), labels.shape, 0, 1) < 0.3] = kwargs["ignore_index"]
        if kwargs["ignore_index"] == 0 and not labels.any():
            kwargs["reduction"] = "sum"  # the mean of no label at all is NaN: tested by itself
        elif kwargs["ignore_index"] != 0:
            labels[(0,) * labels.ndim] = 0
    arrays = numbers(draw(seeds), (n, c, *rest)), labels
    if draw(st.booleans()):
        return Problem((*arrays, numbers(draw(seeds), (c,), 0.5, 2)), kwargs)
    return Problem(arrays, kwargs, (True, True))


def large_problem(shape, reduction, ignore_index=None):
    """Log-probabilities with labels, a third of which may be ignored."""
    rng = np.random.default_rng(len(shape))
    labels, kwargs = rng.integers(0, shape[1], (shape[0], *shape[2:])), {"reduction": reduction}
    if ignore_index is not None:
        labels[rng.random(labels.shape) < 1 / 3] = ignore_index
        kwargs["ignore_index"] = ignore_index
    return Problem((rng.standard_normal(shape), labels), kwargs)


class TestNllLoss(OpContract):
    function = staticmethod(tg.nll_loss)
    reference = staticmethod(reference.nll_loss)
    problems = label_problems()
    large_problems = (
        large_problem((600, 10), "mean", ignore_index=-1),
        large_problem((300, 4), "sum"),
        large_problem((2, 5, 19, 17), "mean"),
        large_problem((2, 5, 19, 17), "none", ignore_index=255),
    )
    claims = [
        (Problem((X, np.array([0, -100])), {}, (True, True)), "sum"),
        (Problem((X, np.array([0, 1])), {"reduction": "none"}, (True, True)), "map"),
        (Problem((X, np.array([0, 1])), {}, (True, False)), None),
    ]
    bad_input = [
        Bad("label 3", (X, [0, 3]), {}, ArgumentError, "from 0 to 2, got 3 at index (1,)"),
        Bad("label -1", (X, [-1, 0]), {}, ArgumentError, "nll_loss: labels"),
        Bad("not ignored", (X, [-2, 0]), {"ignore_index": -1}, ArgumentError, "got -2 at index"),
        Bad("float labels", (X, [0.0, 1.0]), {}, DtypeError, "labels.astype('int64')"),
        Bad("probabilities", (X, X), {}, DtypeError, "integers of shape (2,)"),
        Bad("bool labels", (X, [True, False]), {}, DtypeError, "integers of shape (2,)"),
        Bad("label count", (X, [0, 1, 2]), {}, ShapeError, "one for each row of log_probabilities"),
        Bad("one-hot ints", (X, [[0, 1, 0]] * 2), {}, ShapeError, "they have no class axis"),
        Bad("no axis", (X[0, 0], 0), {}, ShapeError, "(N, C) or (N, C, D...)"),
        Bad("labels of one sample", (X[0], [0, 1]), {}, ShapeError, "labels: expected shape (1,)"),
        Bad("no class", (X[:, :0], [0, 0]), {}, ShapeError, "at least one class"),
        Bad("weights", (X, [0, 1], [1.0, 2.0]), {}, ShapeError, "nll_loss: weight: expected shape"),
        Bad("one weight", (X, [0, 1], 2.0), {}, ShapeError, "a number for each class"),
        Bad("reduction", (X, [0, 1]), {"reduction": "men"}, ArgumentError, "did you mean 'mean'?"),
        Bad("integers", ([[1, 2]], [0]), {}, DtypeError, "log_probabilities: expected float32"),
    ]

    @pytest.mark.parametrize(("rows", "labels"), [(0, []), (2, [-1, -1])])
    def test_the_mean_of_no_label_is_nan(self, rows, labels, device):
        labels = np.array(labels, np.int64)
        x = tg.Tensor(X[:rows], requires_grad=True, device=device)
        loss = tg.nll_loss(x, labels, ignore_index=-1)
        assert np.isnan(loss.item())
        with np.errstate(divide="ignore"):
            loss.backward()
        np.testing.assert_array_equal(x.grad, np.zeros((rows, 3)))
        assert tg.nll_loss(x, labels, None, -1, "sum").item() == 0

    def test_ignored_rows_do_not_matter_whatever_they_hold(self, device):
        x = tg.Tensor([[-np.inf, np.nan], [-1.0, -2.0]], requires_grad=True, device=device)
        loss = tg.nll_loss(x, [-1, 1], ignore_index=-1)
        assert loss.item() == 2
        loss.backward()
        np.testing.assert_array_equal(x.grad, [[0, 0], [0, -1]])

    @pytest.mark.parametrize("label", [1, [1]])
    @pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
    def test_one_sample(self, label, reduction, device):
        x = tg.Tensor([-1.0, -0.5], requires_grad=True, device=device)
        loss = tg.nll_loss(x, label, [3.0, 4.0], reduction=reduction)
        assert loss.shape == () and loss.item() == (0.5 if reduction == "mean" else 2.0)
        loss.backward()
        expected = [0, -1] if reduction == "mean" else [0, -4]
        assert x.device.to_numpy(x.grad).tolist() == expected
        assert np.isnan(tg.nll_loss(x, -100).item())

    @pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u8"])
    def test_labels_of_any_integer_dtype(self, dtype, device):
        x = tg.Tensor([[-1.0, -9, -9], [-9, -9, -3]], device=device)
        assert tg.nll_loss(x, np.array([0, 2], dtype)).item() == 2

    @pytest.mark.parametrize("label", [-1, 3, 2**40])
    def test_the_kernel_gives_nan_for_a_label_out_of_range(self, label):
        """The op refuses such labels where it can see them; on a GPU nothing waits for that."""
        x, labels = np.float32(X), np.array([label, 1])
        mem, op = Memory(tg.Tensor(0.0, device="emulator").device, (True, False)), NllLoss("none")
        with tg.cuda.checking():
            loss, saved = op.forward_kernel(mem, x, labels)
            gx, _ = op.backward_kernel(mem, np.ones(2, np.float32), saved, (True, False))
        np.testing.assert_array_equal(loss, [np.nan, -x[1, 1]])
        np.testing.assert_array_equal(gx, [[0, 0, 0], [0, -1, 0]])
