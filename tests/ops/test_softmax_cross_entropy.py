"""softmax_cross_entropy against loops: labels, probabilities, ignored labels, reductions."""

import numpy as np
import pytest

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract
from tests.strategies import class_label_problems
from tinygraph.errors import ArgumentError, DtypeError, ShapeError

X = np.ones((2, 3))


class TestSoftmaxCrossEntropy(OpContract):
    function = staticmethod(tg.softmax_cross_entropy)
    reference = staticmethod(reference.softmax_cross_entropy)
    problems = class_label_problems()
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

    def test_translated_by_the_maximum(self):
        x = tg.Tensor([[1e4, 0.0], [0.0, -1e4]], requires_grad=True)
        loss = tg.softmax_cross_entropy(x, [1, 0], reduction="none")
        np.testing.assert_array_equal(loss.value, [1e4, 0])
        loss.backward([1.0, 1.0])
        np.testing.assert_array_equal(x.grad, [[1, -1], [0, 0]])

    @pytest.mark.parametrize(("rows", "labels"), [(0, []), (2, [-1, -1])])
    def test_the_mean_of_no_label_is_nan(self, rows, labels):
        labels = np.array(labels, np.int64)
        loss = tg.softmax_cross_entropy(X[:rows], labels, ignore_index=-1)
        assert np.isnan(loss.item())
        assert tg.softmax_cross_entropy(X[:rows], labels, "sum", -1).item() == 0

    def test_ignored_labels_have_no_gradient(self):
        x = tg.Tensor(X, requires_grad=True)
        tg.softmax_cross_entropy(x, [-1, 2], ignore_index=-1).backward()
        np.testing.assert_allclose(x.grad, [[0, 0, 0], [1 / 3, 1 / 3, -2 / 3]])

    def test_an_ignored_row_may_hold_any_logits(self):
        x = tg.Tensor([[-np.inf, 0.0, 0.0], [0.0, 0.0, 0.0]], requires_grad=True)
        loss = tg.softmax_cross_entropy(x, [-1, 2], ignore_index=-1)
        assert loss.item() == np.float32(np.log(3))
        loss.backward()
        np.testing.assert_array_equal(x.grad[0], [0, 0, 0])
