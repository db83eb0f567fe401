"""Module: what it finds, how it names it, modes, saving and loading."""

from __future__ import annotations

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn
from tinygraph.base.errors import ArgumentError, CheckpointError, DeviceError


class Block(nn.Module):
    """Parameters of its own beside layers, a buffer, a layer used twice and plain attributes."""

    def __init__(self):
        self.first = nn.Linear(2, 3)
        self.scale = nn.Parameter([1.0])
        self.count = nn.Buffer([0], dtype="int64")
        self.again = self.first
        self.sizes = (3, 3)
        self.note = {"a": 1}

    def forward(self, x):
        return self.first(x) * self.scale


class Net(nn.Module):
    def __init__(self):
        self.block = Block()
        self.head = nn.Linear(3, 1, bias=False)
        self.tied = self.block.scale

    def forward(self, x):
        return self.head(self.block(x))


NAMES = ["tied", "block.scale", "block.first.weight", "block.first.bias", "head.weight"]


def test_names_are_paths_of_attributes():
    net = Net()
    assert [n for n, _ in net.named_modules()] == ["", "block", "block.first", "head"]
    # `tied` belongs to the outermost module, which comes first; the shared one comes once.
    assert [n for n, _ in net.named_parameters()] == ["tied", *NAMES[2:]]
    assert [n for n, _ in net.named_buffers()] == ["block.count"]
    assert [n for n, _ in net.named_children()] == ["block", "head"]
    assert list(net.children()) == [net.block, net.head]
    assert list(net.modules()) == [net, net.block, net.block.first, net.head]
    assert len(list(net.parameters())) == 4
    assert next(net.buffers()) is net.block.count


def test_parameters_know_their_path():
    net = Net()
    assert {p.name for p in net.parameters()} == {"tied", *NAMES[2:]}
    assert net.block.count.name == "block.count"
    assert nn.Linear(1, 1).weight.name == "weight"
    outer = nn.Sequential({"net": net, "end": nn.ReLU()})
    assert net.head.weight.name == "net.head.weight"
    assert all(p.name == name for name, p in outer.named_parameters())


def test_del_and_replacing_change_what_is_found():
    net = Net()
    del net.tied
    assert [n for n, _ in net.named_parameters()] == NAMES[1:]
    net.head = None
    assert len(list(net.parameters())) == 3


def test_a_module_that_contains_itself_is_walked_once():
    net = Net()
    net.block.parent = net
    assert [n for n, _ in net.named_modules()] == ["", "block", "block.first", "head"]


def test_a_buffer_is_saved_and_not_optimised():
    block = Block()
    assert "count" in block.state_dict()
    assert not block.count.requires_grad
    assert all(p is not block.count for p in block.parameters())


def test_call_passes_everything_to_forward():
    class Options(nn.Module):
        def forward(self, x, y, scale=1):
            return (x + y) * scale

    assert Options()(1, y=2, scale=5) == 15


@pytest.mark.parametrize(
    "container",
    [[nn.Linear(1, 1)], (nn.ReLU(),), {"a": nn.Parameter([1.0])}, {nn.ReLU()}, [nn.Buffer([1.0])]],
)
def test_modules_in_containers_are_refused(container):
    net = Net()
    with pytest.raises(ArgumentError, match=r"Net: layers: .* got a (list|tuple|dict|set) of them"):
        net.layers = container
    assert not hasattr(net, "layers")


def test_modules_that_slip_into_a_list_are_refused_later():
    net = Net()
    net.layers = []
    net.layers.append(nn.ReLU())
    for walk in (net.parameters, net.state_dict, net.train):
        with pytest.raises(ArgumentError, match="Net: layers"):
            list(walk())


def test_no_forward():
    with pytest.raises(ArgumentError, match="Module: no forward"):
        nn.Module()(1)


# ---- modes, gradients, devices --------------------------------------------------------------


def test_train_and_eval_reach_everything():
    net = Net()
    assert all(m.training for m in net.modules())
    assert net.eval() is net
    assert not any(m.training for m in net.modules())
    net.block.train()
    assert [m.training for m in net.modules()] == [False, True, True, False]
    assert net.train(False).training is False
    assert nn.Linear(1, 1).training, "one module's mode is not another's"


def test_zero_grad():
    net = Net()
    tg.mse_loss(net(tg.ones((4, 2))), np.ones((4, 1), np.float32)).backward()
    assert all(p.grad is not None for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())


def test_to():
    net = Net()
    value = net.head.weight.value
    assert net.to("cpu") is net
    np.testing.assert_array_equal(net.head.weight.value, value)
    with pytest.raises((ArgumentError, DeviceError)):
        net.to("tpu")


# ---- saving and loading ---------------------------------------------------------------------


def test_state_dict_holds_copies():
    net = Net()
    state = net.state_dict()
    assert list(state) == [
        "tied",
        "block.count",
        "block.first.weight",
        "block.first.bias",
        "head.weight",
    ]
    before = net.head.weight.value.copy()
    state["head.weight"][...] = 7
    np.testing.assert_array_equal(net.head.weight.value, before)
    assert all(type(a) is np.ndarray for a in state.values())


def test_load_writes_in_place():
    a, b = Net(), Net()
    a.block.count.value[...] = 5
    arrays = [p.value for p in b.parameters()]
    assert b.load_state_dict(a.state_dict()) == ([], [])
    for name, array in a.state_dict().items():
        np.testing.assert_array_equal(b.state_dict()[name], array)
    assert all(p.value is x for p, x in zip(b.parameters(), arrays, strict=True))
    assert b.block.count.value.tolist() == [5]
    a.head.weight.value[...] = 9
    assert not (b.head.weight.value == 9).any()


def test_the_diff_lists_everything_and_nothing_changes():
    net = Net()
    before = net.state_dict()
    state = {name: array + 1 for name, array in before.items()}
    state["head.wieght"] = state.pop("head.weight")
    state["block.first.weight"] = np.ones((2, 3), np.float32)
    state["block.first.bias"] = np.ones(3)
    state["extra"] = "text"
    with pytest.raises(CheckpointError) as caught:
        net.load_state_dict(state)
    lines = str(caught.value).splitlines()
    assert lines[0] == "load_state_dict: the state does not fit this Net:"
    assert lines[1:-1] == [
        "  wrong       block.first.weight: expected float32 (3, 2), got float32 (2, 3)",
        "  wrong       block.first.bias: expected float32 (3,), got float64 (3,)",
        "  missing     head.weight: float32 (1, 3)",
        "  unexpected  head.wieght  did you mean 'head.weight'?",
        "  unexpected  extra",
    ]
    assert "Nothing was changed" in lines[-1]
    for name, array in net.state_dict().items():
        np.testing.assert_array_equal(array, before[name])


def test_not_strict_passes_over_names_but_not_over_shapes():
    net = Net()
    found = net.load_state_dict({"tied": np.array([4.0], np.float32), "other": 1}, strict=False)
    assert found.unexpected_keys == ["other"]
    assert found.missing_keys == ["block.count", *NAMES[2:]]
    assert net.tied.item() == 4
    with pytest.raises(CheckpointError, match=r"tied: expected float32 \(1,\), got float32 \(2,\)"):
        net.load_state_dict({"tied": np.ones(2, np.float32)}, strict=False)


@pytest.mark.parametrize("value", ["text", None, [[1.0], [1.0, 2.0]], [1.0]])
def test_what_is_no_array_of_the_right_kind_is_refused(value):
    with pytest.raises(CheckpointError, match="wrong       tied"):
        Net().load_state_dict({"tied": value}, strict=False)


def test_a_state_must_be_a_mapping():
    with pytest.raises(CheckpointError, match="mapping"):
        Net().load_state_dict([1, 2])


# ---- showing --------------------------------------------------------------------------------


def test_repr_is_nested():
    net = Net()
    del net.block.again
    assert repr(net) == (
        "Net(\n"
        "  (block): Block(\n"
        "    (first): Linear(in_features=2, out_features=3, bias=True)\n"
        "  )\n"
        "  (head): Linear(in_features=3, out_features=1, bias=False)\n"
        ")"
    )
    assert repr(nn.Module()) == "Module()"
