"""Activations are what the layers return, and the model is left as it was."""

from __future__ import annotations

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn


class Shared(nn.Module):
    """One layer twice, a functional op between, and two tensors returned."""

    def __init__(self):
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        first = self.layer(x)
        return first, self.layer(tg.relu(first))


def state_of(model):
    """Everything that could be changed: the attributes of every module, in order."""
    return [(name, list(vars(m).items())) for name, m in model.named_modules()]


def test_each_layer_is_there_with_what_it_returns():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 1)))
    x = np.array([[1.0, -2.0]], np.float32)
    outputs = tg.show.activations(model, x)
    assert list(outputs) == ["0", "1", "2.0", "2", ""]
    hidden = x @ model[0].weight.value.T + model[0].bias.value
    np.testing.assert_allclose(outputs["0"].numpy(), hidden, rtol=1e-6)
    np.testing.assert_allclose(outputs["1"].numpy(), np.maximum(hidden, 0), rtol=1e-6)
    last = np.maximum(hidden, 0) @ model[2][0].weight.value.T + model[2][0].bias.value
    for name in ("2.0", "2", ""):
        np.testing.assert_allclose(outputs[name].numpy(), last, rtol=1e-5)


def test_a_second_call_and_several_outputs_have_names_of_their_own():
    outputs = tg.show.activations(Shared(), tg.randn(2, 3))
    assert list(outputs) == ["layer", "layer (2)", "[0]", "[1]"]
    assert np.array_equal(outputs["layer"].numpy(), outputs["[0]"].numpy())
    assert np.array_equal(outputs["layer (2)"].numpy(), outputs["[1]"].numpy())


def test_a_layer_made_on_the_way_belongs_to_nobody():
    class Made(nn.Module):
        def forward(self, x):
            return nn.ReLU()(x)

    assert list(tg.show.activations(Made(), [[1.0]])) == [""]
    assert "ReLU" not in Made().summary((1,))


def test_it_evaluates_without_gradients_and_changes_nothing():
    model = nn.Sequential(nn.Linear(4, 20), nn.BatchNorm1d(20), nn.Dropout(0.5))
    model[2].eval()  # modes may differ from layer to layer
    before, arrays = state_of(model), model.state_dict()
    outputs = tg.show.activations(model, tg.randn(8, 4))
    assert all(not x.requires_grad and x.op is None for x in outputs.values())
    assert np.array_equal(outputs["2"].numpy(), outputs["1"].numpy())  # nothing dropped
    assert all(np.array_equal(a, arrays[name]) for name, a in model.state_dict().items())
    after = state_of(model)
    assert [n for n, _ in before] == [n for n, _ in after]
    for (_, old), (_, new) in zip(before, after, strict=True):
        assert [k for k, _ in old] == [k for k, _ in new]
        assert all(a is b for (_, a), (_, b) in zip(old, new, strict=True))
    assert model.training and not model[2].training
    assert model(tg.randn(16, 4)).requires_grad


def test_a_forward_that_fails_leaves_nothing_behind():
    model = nn.Sequential(nn.Linear(4, 2), nn.Linear(3, 1))
    before = state_of(model)
    with pytest.raises(tg.errors.ShapeError):
        tg.show.activations(model, tg.randn(1, 4))
    assert str(state_of(model)) == str(before)
    assert all("forward" not in vars(m) for m in model.modules())


def test_a_forward_of_the_object_itself_is_kept():
    model = nn.Sequential(nn.ReLU())
    model[0].forward = own = lambda x: x * 3
    assert tg.show.activations(model, [[2.0]])["0"].item() == 6
    assert vars(model[0])["forward"] is own


@pytest.mark.parametrize("model", [None, nn.Linear, lambda x: x, "model"])
def test_what_is_no_model(model):
    with pytest.raises(tg.errors.ArgumentError, match=r"show\.activations: model: expected"):
        tg.show.activations(model, tg.zeros(1, 2))
