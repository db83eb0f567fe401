"""Leaves that a module keeps: what may take their place, and writes that backward must notice."""

import pickle

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn
from tinygraph.base.errors import ArgumentError, DtypeError, GraphError, ShapeError
from tinygraph.engine.device import get_device
from tinygraph.engine.writes import Writes

X = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)


@pytest.mark.parametrize("kind", [nn.Parameter, nn.Buffer])
class TestValue:
    def test_takes_what_fits_and_copies_it(self, kind):
        leaf, array = kind([1.0, 2.0]), np.array([3.0, 4.0], np.float32)
        leaf.value = array
        array[:] = 0
        assert leaf.value.tolist() == [3, 4] and leaf.value.dtype == np.float32

    @pytest.mark.parametrize("new", [[3, 4.5], tg.Tensor([3.0, 4.5]), np.float32([3, 4.5])])
    def test_lists_tensors_and_arrays(self, kind, new):
        leaf = kind([1.0, 2.0])
        leaf.value = new
        assert leaf.value.tolist() == [3, 4.5] and leaf.value.dtype == np.float32

    def test_a_list_takes_the_dtype_of_the_leaf(self, kind):
        leaf = kind([1.0], dtype="f8")
        leaf.value = [0.1]
        assert leaf.value.tolist() == [0.1]

    @pytest.mark.parametrize("new", [1.0, [1.0], [[1.0, 2.0]], np.zeros(3, "f4")], ids=str)
    def test_another_shape(self, kind, new):
        leaf = kind([1.0, 2.0], name="scale")
        with pytest.raises(ShapeError, match=r"scale: expected an array of shape \(2,\)"):
            leaf.value = new
        assert leaf.value.tolist() == [1, 2]

    @pytest.mark.parametrize("new", [np.zeros(2), np.zeros(2, int)], ids=str)
    def test_another_dtype(self, kind, new):
        leaf = kind([1.0, 2.0])
        with pytest.raises(DtypeError, match=r"an array of float32, got (float|int)64"):
            leaf.value = new
        assert leaf.value.tolist() == [1, 2]

    def test_on_another_device(self, kind, device):
        leaf = kind([1.0, 2.0], device=device)
        leaf.value = np.float32([5, 6])
        assert leaf.numpy().tolist() == [5, 6] and str(leaf.device) == device


class TestModule:
    def test_an_array_does_not_drop_a_parameter(self):
        layer = nn.Linear(2, 1)
        with pytest.raises(
            ArgumentError, match=r"Linear: weight: .*a Parameter or a Buffer, or None, got ndarray"
        ):
            layer.weight = np.zeros((1, 2), np.float32)
        assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"]

    @pytest.mark.parametrize("value", [tg.zeros(1, 2), 0.0, "x", nn.ReLU()], ids=str)
    def test_nor_does_anything_else(self, value):
        layer = nn.Linear(2, 1)
        with pytest.raises(ArgumentError, match="weight.value = array for other numbers"):
            layer.weight = value

    def test_a_buffer_or_a_layer_likewise(self):
        network = nn.Sequential(nn.BatchNorm1d(2))
        with pytest.raises(ArgumentError, match="running_mean: expected a Parameter or a Buffer"):
            network[0].running_mean = np.zeros(2)
        network.head = nn.Linear(2, 1)
        with pytest.raises(ArgumentError, match=r"head: expected a Module, or None, got function"):
            network.head = tg.relu

    def test_none_another_parameter_and_del_are_taken(self):
        layer = nn.Linear(2, 1)
        layer.bias = None
        layer.weight = nn.Parameter([[1.0, 2.0]])
        assert layer(X).value.tolist() == [[5], [11]]
        del layer.weight
        layer.weight = "free"
        assert list(layer.parameters()) == []

    def test_moving_keeps_the_optimiser_of_the_same_device(self):
        layer = nn.Linear(2, 1).to("cpu")
        sgd = tg.optim.SGD(layer.parameters(), lr=1.0)
        layer.to("cpu")
        layer.weight.grad = np.ones((1, 2), np.float32)
        before = layer.weight.numpy().copy()
        sgd.step()
        assert (layer.weight.value == before - 1).all()


# ---- writes between forward and backward --------------------------------------------------------

MATCH = r"linear: its backward needs the values that the leaf 'weight' \(1, 2\) had"


def step(layer, _):
    sgd = tg.optim.SGD(layer.parameters(), lr=0.1)
    layer.weight.grad = np.ones((1, 2), np.float32)
    sgd.step()


def load(layer, _):
    layer.load_state_dict(nn.Linear(2, 1).state_dict())


@pytest.mark.parametrize("write", [step, load])
def test_a_written_parameter_is_noticed(write):
    layer = nn.Linear(2, 1)
    x = tg.Tensor(X, requires_grad=True)
    loss = layer(x).sum()
    write(layer, None)
    with pytest.raises(GraphError, match=MATCH):
        loss.backward()


@pytest.mark.parametrize("write", [step, load])
def test_on_every_device(write, device):
    layer = nn.Linear(2, 1).to(device)
    loss = layer(tg.Tensor(X, requires_grad=True, device=device)).sum()
    write(layer, None)
    with pytest.raises(GraphError, match=MATCH):
        loss.backward()


def test_a_value_put_in_its_place_leaves_what_was_saved():
    """The op has the array of before, as it computed with it."""
    layer, x = nn.Linear(2, 1), tg.Tensor(X, requires_grad=True)
    before = layer.weight.numpy().copy()
    loss = layer(x).sum()
    layer.weight.value = np.zeros((1, 2), np.float32)
    loss.backward()
    assert (x.grad == before).all()


def test_a_write_to_what_no_op_has_saved():
    """The gradient of a sum needs none of its terms."""
    layer = nn.Linear(2, 1)
    loss = (tg.Tensor(X) + layer.weight).sum()
    step(layer, None)
    layer.weight.grad = None
    loss.backward()
    assert layer.weight.grad.tolist() == [[2, 2]]


def test_forward_again_is_the_way_out():
    layer, x = nn.Linear(2, 1), tg.Tensor(X, requires_grad=True)
    graph = tg.Graph(layer(x).sum())
    step(layer, None)
    graph.forward()
    graph.backward()
    assert (x.grad == layer.weight.value).all()


def test_accumulation_and_a_second_graph_go_on():
    layer = nn.Linear(2, 1)
    sgd = tg.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(3):
        sgd.zero_grad()
        for _ in range(2):
            layer(tg.Tensor(X, requires_grad=True)).sum().backward()
        sgd.step()
    assert np.isfinite(layer.weight.value).all()


def test_a_traced_function_is_not_replayed_without_an_assignment():
    layer = nn.Linear(2, 1, bias=False)

    @tg.compile
    def halve(x):
        y = layer(x).sum()
        layer.weight.value = layer.weight.value / 2
        return y

    with tg.no_grad(), pytest.warns(tg.errors.PlanWarning):
        first = [halve(X).item() for _ in range(3)]
    assert first[1] == pytest.approx(first[0] / 2) and first[2] == pytest.approx(first[0] / 4)


@pytest.mark.parametrize("device", ["cpu", "emulator"])
def test_a_module_that_was_pickled_is_whole(device, monkeypatch):
    """As processes of other libraries do it, in which the count of writes begins anew."""
    network = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).to(device)
    network[0].weight.value = network[0].weight.value + 1
    sent = pickle.dumps(network)
    monkeypatch.setattr(Writes, "count", 0)
    found = pickle.loads(sent)
    assert all(p.device is get_device(device) and p.requires_grad for p in found.parameters())
    for name, array in network.state_dict().items():
        np.testing.assert_array_equal(found.state_dict()[name], array)
    x = np.tile(X, (10, 1))
    before = found(x).numpy()
    (found(x) * before).sum().backward()  # refuses what was written since
    assert found[0].weight.grad.any()
