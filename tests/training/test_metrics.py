"""Accuracy, counted by hand."""

import math

import numpy as np
import pytest

from tinygraph.base.errors import ShapeError
from tinygraph.training import accuracy
from tinygraph.training.progress import describe


def test_counts_by_hand():
    logits = [[3.0, 1.0, 2.0], [0.0, 5.0, 5.0], [1.0, 2.0, 9.0], [4.0, 0.0, 0.0]]
    assert accuracy(logits, [0, 1, 2, 1]) == 0.75  # a tie counts for the first
    assert accuracy(logits, [1, 2, 0, 2]) == 0.0


def test_pixels_are_labels_too():
    logits = np.zeros((1, 2, 2, 2))
    logits[0, 1, 0, 0] = 1  # class 1 wins at one pixel of four
    assert accuracy(logits, np.ones((1, 2, 2), int)) == 0.25


def test_no_label_is_nan():
    assert math.isnan(accuracy(np.zeros((0, 3)), np.zeros(0, int)))


@pytest.mark.parametrize("shape", [(3,), (2, 2), ()])
def test_labels_must_fit(shape):
    with pytest.raises(ShapeError, match="one integer for each row"):
        accuracy(np.zeros((2, 3)), np.zeros(shape, int))


def test_an_epoch_as_a_line():
    row = {"epoch": 3, "loss": 0.5, "validation_accuracy": 0.25, "seconds": 2.0}
    assert describe(row, 20) == "epoch  3/20  loss 0.5000  validation accuracy 0.2500  2.00 s"
