"""cross_entropy against loops: weights, smoothed labels, ignored labels, probabilities."""

import math

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.reference.basics import reduced
from tests.strategies import class_label_problems, numbers, seeds
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError

X = np.ones((2, 3))


def cross_entropy(
    logits, labels, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0
):
    """Each row by its own: the shares of its classes, their weights, and logarithms."""
    classes, losses, divisor = logits.shape[1], [], 0.0
    weight = [1.0] * classes if weight is None else weight.tolist()
    each = (logits.shape[0], *logits.shape[2:])
    for n, *rest in np.ndindex(each):
        scores = logits[(n, slice(None), *rest)].tolist()
        log_total = math.log(math.fsum(math.exp(v) for v in scores))
        if labels.dtype.kind == "f":
            shares, counted = labels[(n, slice(None), *rest)].tolist(), 1.0
        else:
            label = int(labels[(n, *rest)])
            if label == ignore_index:
                losses.append(0.0)
                continue
            shares, counted = [float(c == label) for c in range(classes)], weight[label]
        divisor += counted
        loss = 0.0
        for c in range(classes):
            share = (1 - label_smoothing) * shares[c] + label_smoothing / classes
            loss += weight[c] * share * (log_total - scores[c])
        losses.append(loss)
    return reduced(losses, each, reduction, divisor)


@st.composite
def problems(draw):
    problem = draw(class_label_problems())
    classes, kwargs = problem.arrays[0].shape[1], dict(problem.kwargs)
    kwargs |= draw(st.sampled_from([{}, {"label_smoothing": 0.2}, {"label_smoothing": 1.0}]))
    if draw(st.booleans()):
        return Problem((*problem.arrays, numbers(draw(seeds), (classes,), 0.5, 2)), kwargs)
    return Problem(problem.arrays, kwargs, problem.carries)


class TestCrossEntropy(OpContract):
    function = staticmethod(tg.cross_entropy)
    reference = staticmethod(cross_entropy)
    problems = problems()
    large_problems = tuple(
        Problem((numbers(1, shape), numbers(2, (shape[0], *shape[2:]), 0, 2).astype(int)), options)
        for shape, options in (
            ((70, 40), {"label_smoothing": 0.1}),
            ((9, 77), {"label_smoothing": 0.3, "reduction": "none", "ignore_index": 1}),
            ((3, 1100), {"label_smoothing": 0.1, "ignore_index": 0}),
            ((2, 5, 19), {"label_smoothing": 0.1, "reduction": "sum"}),
        )
    )
    claims = [
        (Problem((X, np.array([0, 1])), {"label_smoothing": 0.1}, (True, True)), "sum"),
    ]
    conventions = [
        Convention("certain", ([[-np.inf, 0.0]], [1]), 0.0, ([[0.0, 0.0]], None)),
        Convention(
            "no class but one", ([[3.0]], [0]), 0.0, ([[0.0]], None), {"label_smoothing": 0.5}
        ),
    ]
    bad_input = [
        Bad("label 3", (X, [0, 3]), {}, ArgumentError, "from 0 to 2, got 3 at index (1,)"),
        Bad("weighted label", (X, [0, 3], np.ones(3)), {}, ArgumentError, "got 3 at index (1,)"),
        Bad("weights", (X, [0, 1], np.ones(2)), {}, ShapeError, "weight: expected shape (3,)"),
        Bad("smoothing", (X, [0, 1]), {"label_smoothing": 1.5}, ArgumentError, "label_smoothing"),
        Bad("probabilities", (X, X), {"ignore_index": 0}, ArgumentError, "below 0, or None"),
        Bad("bool labels", (X, [True, False], np.ones(3)), {}, DtypeError, "integers of shape"),
        Bad("no axis", (X[0, 0], [0]), {}, ShapeError, "(N, C) or (N, C, D...)"),
        Bad("labels of one", (X[0], [0, 1]), {}, ShapeError, "labels: expected shape (1,)"),
        Bad("smooth floats", (X, [0.5, 0.5]), {"label_smoothing": 0.5}, DtypeError, "int64"),
        Bad("reduction", (X, [0, 1]), {"reduction": "men"}, ArgumentError, "did you mean 'mean'?"),
    ]

    def test_a_class_that_is_impossible_does_not_matter(self, device):
        """Weights are multiplied to losses: no 0 meets an infinite logarithm."""
        x = tg.Tensor([[0.0, -np.inf, 0.0]], requires_grad=True, device=device)
        loss = tg.cross_entropy(x, [2], [1.0, 1.0, 4.0], reduction="sum")
        assert loss.item() == pytest.approx(4 * math.log(2))
        loss.backward()
        np.testing.assert_allclose(x.grad, [[2, 0, -2]], rtol=1e-6)

    @pytest.mark.parametrize("dtype", ["u1", "i4", "u8"])
    def test_labels_of_any_integer_dtype(self, dtype, device):
        x = tg.Tensor([[0.0, 1.0, 2.0], [3.0, 1.0, 0.0]], device=device)
        w, t = np.array([1.0, 2.0, 3.0]), np.array([2, 1])
        loss = tg.cross_entropy(x, t.astype(dtype), w, label_smoothing=0.1)
        expected = cross_entropy(np.asarray(x.numpy(), float), t, w, label_smoothing=0.1)
        assert loss.item() == pytest.approx(float(expected))

    @pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
    @pytest.mark.parametrize("label", [2, [2], [0.25, 0.0, 0.75]])
    def test_one_sample(self, label, reduction, device):
        scores = np.array([0.5, -1.0, 2.0])
        x = tg.Tensor(scores, requires_grad=True, device=device)
        loss = tg.cross_entropy(x, label, label_smoothing=0.1, reduction=reduction)
        row = np.atleast_1d(label)
        row = row[None] if row.dtype.kind == "f" else row
        expected = cross_entropy(scores[None], row, label_smoothing=0.1, reduction="sum")
        assert loss.shape == () and loss.item() == pytest.approx(float(expected))
        loss.backward()
        shares = np.array([0.25, 0, 0.75] if row.dtype.kind == "f" else [0, 0, 1])
        softmax = np.exp(scores) / np.exp(scores).sum()
        expected = softmax - (0.9 * shares + 0.1 / 3)
        np.testing.assert_allclose(x.device.to_numpy(x.grad), expected, rtol=1e-6)

    def test_all_labels_ignored(self, device):
        x = tg.Tensor(X, requires_grad=True, device=device)
        assert np.isnan(tg.cross_entropy(x, [-100, -100], np.ones(3)).item())
        assert tg.cross_entropy(x, [-100, -100], np.ones(3), reduction="sum").item() == 0

    @pytest.mark.parametrize("smoothing", [0.0, 0.1])
    def test_without_weights_it_is_one_op(self, smoothing):
        x = tg.Tensor(X, requires_grad=True)
        loss = tg.cross_entropy(x, [0, 1], label_smoothing=smoothing)
        assert loss.op.name == "softmax_cross_entropy" and len(loss.inputs) == 2
