"""What a module is made of, put in by name and changed together; parameters as one vector."""

import math

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn
from tinygraph.base.errors import ArgumentError, ShapeError


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_parameter("scale", nn.Parameter([2.0]))
        self.register_buffer("offset", tg.Tensor([1.0]))
        self.register_buffer("mask", tg.Tensor([1.0]), persistent=False)
        self.register_buffer("absent", None)
        self.add_module("inner", nn.Linear(1, 1))

    def forward(self, x):
        return self.inner(x) * self.scale * self.mask + self.offset


def test_what_is_registered_is_an_attribute():
    module = Scaled()
    assert [name for name, _ in module.named_parameters()] == [
        "scale", "inner.weight", "inner.bias",
    ]  # fmt: skip
    assert [name for name, _ in module.named_buffers()] == ["offset", "mask"]
    assert module.absent is None and isinstance(module.offset, nn.Buffer)
    assert module(np.float32([[0.0]])).item() == pytest.approx(2 * module.inner.bias.item() + 1)


def test_a_buffer_that_is_not_persistent_moves_and_is_not_saved():
    module = Scaled().to("emulator")
    assert str(module.mask.device) == str(module.offset.device) == "emulator"
    state = module.state_dict()
    assert list(state) == ["scale", "offset", "inner.weight", "inner.bias"]
    assert Scaled().load_state_dict(state).missing_keys == []
    found = Scaled().load_state_dict({**state, "mask": np.ones(1, "f4")}, strict=False)
    assert found.unexpected_keys == ["mask"]


def test_own_leaves_and_prefixes():
    module = Scaled()
    assert [name for name, _ in module.named_parameters(recurse=False)] == ["scale"]
    assert len(list(module.parameters(recurse=False))) == 1
    assert list(dict(module.named_parameters(prefix="net")))[1] == "net.inner.weight"
    assert [name for name, _ in module.inner.named_buffers()] == []


def test_by_dotted_names():
    net = nn.Sequential(nn.Sequential(Scaled()))
    assert net.get_submodule("0.0.inner") is net[0][0].inner and net.get_submodule("") is net
    assert net.get_parameter("0.0.scale") is net[0][0].scale
    with pytest.raises(ArgumentError, match="target: .*got 0.0.iner.*did you mean '0.0.inner'"):
        net.get_submodule("0.0.iner")
    with pytest.raises(ArgumentError, match="the name of a parameter, got 0.0"):
        net.get_parameter("0.0")


def test_apply_visits_each_module_children_first():
    net, seen = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.ReLU())), []
    assert net.apply(seen.append) is net
    assert seen == [net[0], net[1][0], net[1], net]


def test_frozen_parameters():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    assert net[0].requires_grad_(False) is net[0]
    net(np.ones((3, 2), "f4")).sum().backward()
    assert net[0].weight.grad is None and net[1].weight.grad is not None
    net.requires_grad_()
    assert all(p.requires_grad for p in net.parameters())


def test_a_vector_of_all_parameters_and_back(device):
    net = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1)).to(device)
    vector = nn.utils.parameters_to_vector(net.parameters())
    expected = np.concatenate([p.numpy().ravel() for p in net.parameters()])
    np.testing.assert_array_equal(vector.numpy(), expected)
    (vector * np.arange(11, dtype="f4")).sum().backward()
    assert net[0].bias.grad.tolist() == [6, 7]
    nn.utils.vector_to_parameters(np.arange(11, dtype="f4"), net.parameters())
    assert net[0].weight.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert net[1].bias.item() == 10 and str(net[1].bias.device) == device
    with pytest.raises(ShapeError, match=r"vec: expected \(11,\), got \(10,\)"):
        nn.utils.vector_to_parameters(np.zeros(10, "f4"), net.parameters())


def test_clipping_under_both_names():
    w = tg.Parameter([0.0, 0.0])
    w.grad = np.array([3.0, 4.0], "f4")
    assert nn.utils.clip_grad_norm_([w], 1.0) == pytest.approx(5)
    assert math.hypot(*w.grad) == pytest.approx(1)
    nn.utils.clip_grad_value_(w, 0.25)
    assert w.grad.tolist() == [0.25, 0.25]
