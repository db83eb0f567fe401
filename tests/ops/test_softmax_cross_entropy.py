"""softmax_cross_entropy against loops: labels, probabilities, ignored labels, reductions."""

import numpy as np
import pytest

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import class_label_problems
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError

X = np.ones((2, 3))


def large_problem(shape, reduction, ignore_index=None, probabilities=False):
    """Logits with labels, a third of which is ignored."""
    rng = np.random.default_rng(sum(shape))
    logits, kwargs = 3 * rng.standard_normal(shape), {"reduction": reduction}
    if probabilities:
        return Problem((logits, rng.uniform(0, 1, shape)), kwargs)
    labels = rng.integers(0, shape[1], (shape[0], *shape[2:]))
    if ignore_index is not None:
        labels[rng.random(labels.shape) < 1 / 3] = ignore_index
        kwargs["ignore_index"] = ignore_index
    return Problem((logits, labels), kwargs)


class TestSoftmaxCrossEntropy(OpContract):
    function = staticmethod(tg.softmax_cross_entropy)
    reference = staticmethod(reference.softmax_cross_entropy)
    problems = class_label_problems()
    large_problems = (
        large_problem((600, 10), "mean", ignore_index=-1),  # one block, a thread for a row
        large_problem((600, 10), "sum", probabilities=True),
        large_problem((70, 40), "mean", ignore_index=-1),  # one block, eight threads for a row
        large_problem((700, 33), "mean", ignore_index=-1),  # a sum of two stages
        large_problem((40, 500), "sum", probabilities=True),  # a warp for a row
        large_problem((9, 77), "none", ignore_index=255),
        large_problem((3, 1500), "mean"),  # a block for a row
        large_problem((3, 1500), "mean", probabilities=True),
        large_problem((2, 5, 19, 17), "mean", ignore_index=-1),  # a thread for a row
        large_problem((2, 5, 19, 17), "none", probabilities=True),
    )
    claims = [
        (Problem((X, np.array([0, 7])), {"ignore_index": 7}, (True, True)), "sum"),
        (Problem((X, X), {}, (True, True)), "sum"),
    ]
    bad_input = [
        Bad("label 3", (X, [0, 3]), {}, ArgumentError, "from 0 to 2, got 3 at index (1,)"),
        Bad("label -1", (X, [-1, 0]), {}, ArgumentError, "got -1 at index (0,)"),
        Bad("not ignored", (X, [-2, 0]), {"ignore_index": -1}, ArgumentError, "got -2 at index"),
        Bad("float labels", (X, [0.0, 1.0]), {}, DtypeError, "labels.astype('int64')"),
        Bad("bool labels", (X, [True, False]), {}, DtypeError, "integers of shape (2,)"),
        Bad("label count", (X, [0, 1, 2]), {}, ShapeError, "shape (2,), one for each row"),
        Bad("one-hot ints", (X, [[0, 1, 0]] * 2), {}, ShapeError, "they have no class axis"),
        Bad("no batch", (X[0], [0]), {}, ShapeError, "(N, C) or (N, C, D...)"),
        Bad("no class", (X[:, :0], [0, 0]), {}, ShapeError, "at least one class"),
        Bad("reduction", (X, [0, 1]), {"reduction": "men"}, ArgumentError, "did you mean 'mean'?"),
        Bad("ignored probabilities", (X, X), {"ignore_index": 0}, ArgumentError, "None with"),
        Bad("integers", (X.astype(int), [0, 1]), {}, DtypeError, "logits: expected float32"),
    ]

    @pytest.mark.parametrize(("rows", "labels"), [(0, []), (2, [-1, -1])])
    def test_the_mean_of_no_label_is_nan(self, rows, labels, device):
        labels = np.array(labels, np.int64)
        x = tg.Tensor(X[:rows], requires_grad=True, device=device)
        loss = tg.softmax_cross_entropy(x, labels, ignore_index=-1)
        assert np.isnan(loss.item())
        loss.backward()
        np.testing.assert_array_equal(x.grad, np.zeros((rows, 3)))
        assert tg.softmax_cross_entropy(x, labels, "sum", -1).item() == 0

    @pytest.mark.parametrize("logit", [-np.inf, np.nan, np.inf])
    def test_an_ignored_row_may_hold_any_logits(self, logit, device):
        x = tg.Tensor([[logit, 0.0, 0.0], [0.0, 0.0, 0.0]], requires_grad=True, device=device)
        loss = tg.softmax_cross_entropy(x, [-1, 2], ignore_index=-1)
        assert loss.item() == np.float32(np.log(3))
        loss.backward()
        np.testing.assert_array_equal(x.grad[0], [0, 0, 0])

    @pytest.mark.parametrize("logit", [np.nan, np.inf])
    def test_what_is_no_number_shows(self, logit, device):
        x = tg.Tensor([[0.0, logit, 0.0], [0.0, 0.0, 0.0]], requires_grad=True, device=device)
        loss = tg.softmax_cross_entropy(x, [0, 2], reduction="none")
        assert np.isnan(loss.value[0]) and loss.value[1] == np.float32(np.log(3))
        loss.backward([1.0, 1.0])
        assert np.isnan(x.grad[0]).all() and np.isfinite(x.grad[1]).all()

    @pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.uint64])
    def test_labels_of_any_integer_dtype(self, dtype, device):
        x = tg.Tensor([[0.0, 1.0, 2.0], [3.0, 1.0, 0.0]], device=device)
        expected = reference.softmax_cross_entropy(x.value.astype(float), np.array([2, 1]))
        loss = tg.softmax_cross_entropy(x, np.array([2, 1], dtype))
        np.testing.assert_allclose(loss.value, expected, rtol=1e-6)

    def test_the_kernel_gives_nan_for_a_label_out_of_range(self):
        """On a GPU nobody looks at the labels before the launch."""
        x, labels = np.zeros((3, 2), np.float32), np.array([-1, 2, 1])
        loss, maxima, totals = np.empty((3, 3), np.float32)
        kernel = tg.cuda.op_kernel(
            "softmax_cross_entropy", "labels_forward", "float32", ROW_THREADS=32
        )
        report = kernel.check(
            1,
            256,
            x,
            labels,
            tg.cuda.Out(maxima),
            tg.cuda.Out(totals),
            tg.cuda.Out(loss),
            np.empty(0, np.float32),
            np.empty(0, np.int64),
            3,
            2,
            1,
            0,
            0,
            0,
            1.0,
            0.0,
        )
        assert report.ok, report.text()
        np.testing.assert_array_equal(loss, [np.nan, np.nan, np.float32(np.log(2))])

    @pytest.mark.parametrize("labels", [np.int64, np.float32])
    @pytest.mark.parametrize(
        "shape, launches",
        [((1000, 10), 1), ((128, 100), 1), ((2, 5, 19, 17), 1), ((1, 5000), 1), ((128, 1000), 2)],
    )
    def test_launches_of_a_mean(self, shape, launches, labels):
        """One block where it has little to read: a launch costs more than 16384 elements."""
        x = tg.Tensor(np.zeros(shape, np.float32), requires_grad=True, device="emulator")
        given = np.ones(shape if labels is np.float32 else (shape[0], *shape[2:]), labels)
        with tg.cuda.recording(execute=False) as forward:
            loss = tg.softmax_cross_entropy(x, given)
        with tg.cuda.recording(execute=False) as backward:
            loss.backward()
        assert (len(forward), len(backward)) == (launches, 1)
