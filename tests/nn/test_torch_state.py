"""A network's state from PyTorch: the same names, logits, gradients and running statistics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn
from tinygraph.base.errors import CheckpointError


class Net(nn.Module):
    """The network of data/make_torch_cnn.py."""

    def __init__(self):
        self.features = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1, bias=False),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 6, 3, stride=2),
            nn.LeakyReLU(0.1),
            nn.AvgPool2d(2),
            nn.Flatten(),
        )
        self.norm = nn.BatchNorm1d(24, momentum=0.3)
        self.middle = nn.Linear(24, 24)
        self.again = nn.Linear(24, 24)
        self.again.weight = self.middle.weight
        self.layer_norm = nn.LayerNorm(24)
        self.head = nn.Linear(24, 5)

    def forward(self, x):
        h = tg.elu(self.middle(self.norm(self.features(x))))
        return self.head(self.layer_norm(tg.gelu(self.again(h))))


@pytest.fixture(scope="module")
def torch_cnn():
    with np.load(Path(__file__).parent / "data" / "torch_cnn.npz", allow_pickle=False) as file:
        return dict(file)


def part(arrays, prefix):
    return {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}


@pytest.fixture
def state(torch_cnn):
    return {name: array.copy() for name, array in part(torch_cnn, "state.").items()}


@pytest.fixture
def net(state):
    tg.manual_seed(3)
    net = Net()
    assert net.load_state_dict(state) == ([], [])
    return net


def test_logits_in_evaluation(torch_cnn, net):
    before = net.state_dict()
    logits = net.eval()(torch_cnn["x"])
    np.testing.assert_allclose(logits.value, torch_cnn["eval_logits"], rtol=1e-5, atol=1e-5)
    for name, array in net.state_dict().items():
        np.testing.assert_array_equal(array, before[name])


def test_one_training_batch(torch_cnn, net):
    logits = net(torch_cnn["x"])
    np.testing.assert_allclose(logits.value, torch_cnn["train_logits"], rtol=1e-5, atol=1e-5)
    after = part(torch_cnn, "after.")
    buffers = dict(net.named_buffers())
    assert set(buffers) == set(after)
    for name, buffer in buffers.items():
        assert buffer.dtype == after[name].dtype and buffer.shape == after[name].shape
        np.testing.assert_allclose(buffer.value, after[name], rtol=1e-5, atol=1e-6)
    assert net.norm.num_batches_tracked.item() == 4
    tg.softmax_cross_entropy(logits, torch_cnn["labels"]).backward()
    grads = part(torch_cnn, "grad.")
    parameters = dict(net.named_parameters())
    assert set(parameters) == set(grads), "the shared weight comes once, under its first name"
    for name, p in parameters.items():
        np.testing.assert_allclose(p.grad, grads[name], rtol=1e-4, atol=2e-6, err_msg=name)


def test_pytorchs_names_in_pytorchs_order(state):
    ours = [name for name, _ in Net()._named_leaves(nn.Parameter, nn.Buffer)]
    assert sorted(ours) == sorted(set(state) - {"again.weight"})
    assert [n for n in ours if n.startswith("features.1.")] == [
        n for n in state if n.startswith("features.1.")
    ]


def test_a_shared_weight_may_have_either_name(state):
    weight = state["middle.weight"]
    for missing in ("again.weight", "middle.weight"):
        net = Net()
        assert net.load_state_dict({k: v for k, v in state.items() if k != missing}) == ([], [])
        np.testing.assert_array_equal(net.middle.weight.value, weight)
        assert net.again.weight is net.middle.weight
    del state["again.weight"], state["middle.weight"]
    with pytest.raises(CheckpointError, match=r"missing     middle\.weight"):
        Net().load_state_dict(state)


def test_two_names_of_one_weight_must_agree(state):
    net = Net()
    before = net.state_dict()
    state["again.weight"] = state["again.weight"] + 1
    with pytest.raises(CheckpointError, match=r"again\.weight: expected what middle\.weight is"):
        net.load_state_dict(state)
    state["again.weight"] = state["again.weight"][:3]
    with pytest.raises(CheckpointError, match=r"again\.weight: expected float32 \(24, 24\)"):
        net.load_state_dict(state, strict=False)
    for name, array in net.state_dict().items():
        np.testing.assert_array_equal(array, before[name])


def test_a_shared_nan_agrees_with_itself(state):
    state["middle.weight"][0, 0] = state["again.weight"][0, 0] = np.nan
    net = Net()
    net.load_state_dict(state)
    assert np.isnan(net.again.weight.value[0, 0])


def test_a_layer_used_twice_and_a_module_that_holds_itself():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    net.again = net[0]
    net.me = net
    state = {name: np.full((2, 2), 3, np.float32) for name in ("0.weight", "again.weight")}
    state["again.bias"] = np.zeros(2, np.float32)
    assert net.load_state_dict(state) == ([], [])
    assert (net[0].weight.value == 3).all()
