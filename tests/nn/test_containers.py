"""Sequential, ModuleList, Residual: order, names, indexing, refusals."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn
from tinygraph.base.errors import ArgumentError, ShapeError


def test_layers_run_in_order():
    class Times(nn.Module):
        def __init__(self, n):
            self.n = n

        def forward(self, x):
            return (*x, self.n)

    net = nn.Sequential(*[Times(i) for i in range(12)])
    assert net(()) == tuple(range(12)), "by position, not by the alphabet: '10' comes after '9'"
    assert nn.Sequential()(5) == 5


def test_equals_the_formula():
    first, last = nn.Linear(2, 3, dtype="float64"), nn.Linear(3, 1, dtype="float64")
    net = nn.Sequential(first, nn.ReLU(), last)
    x = np.random.default_rng(0).standard_normal((4, 2))
    w0, b0, w1, b1 = (p.value for p in (first.weight, first.bias, last.weight, last.bias))
    expected = np.clip(x @ w0.T + b0, 0, None) @ w1.T + b1
    np.testing.assert_allclose(net(tg.Tensor(x)).value, expected, rtol=1e-13)


def test_indexing():
    a, b, c = nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)
    net = nn.Sequential(a, b, c)
    assert len(net) == 3
    assert list(net) == [a, b, c]
    assert net[0] is a and net[-1] is c and net["1"] is b
    part = net[1:]
    assert isinstance(part, nn.Sequential) and list(part) == [b, c]
    assert [n for n, _ in part.named_parameters()] == ["2.weight", "2.bias"]
    with pytest.raises(IndexError, match="index 3 of 3 members"):
        net[3]
    with pytest.raises(IndexError):
        net[-4]
    with pytest.raises(ArgumentError, match="one of"):
        net["hidden"]


def test_a_slice_does_not_rename_the_parameters_of_the_whole():
    net = nn.Sequential({"body": nn.Sequential(nn.Linear(1, 1), nn.ReLU())})
    net["body"][:1]
    assert net["body"][0].weight.name == "body.0.weight"


def test_names():
    net = nn.Sequential(OrderedDict(hidden=nn.Linear(2, 2), out=nn.Linear(2, 1)))
    assert net["out"] is net.out
    assert [n for n, _ in net.named_parameters()] == [
        "hidden.weight",
        "hidden.bias",
        "out.weight",
        "out.bias",
    ]
    with pytest.raises(ArgumentError, match="did you mean 'hidden'"):
        net["hiden"]


def test_a_shared_layer_runs_twice_and_counts_once():
    layer = nn.Linear(2, 2)
    net = nn.Sequential(layer, nn.ReLU(), layer)
    assert len(net) == 3
    assert len(list(net.parameters())) == 2
    assert list(net.state_dict()) == ["0.weight", "0.bias"]


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        ([tg.relu], "layer 0: expected a Module, got relu"),
        ([nn.ReLU(), nn.ReLU], "layer 1: expected a Module, got the class ReLU, without paren"),
        ([[nn.ReLU()]], "layer 0: expected a Module, got list"),
        ([{"a.b": nn.ReLU()}], "without dots"),
        ([{"": nn.ReLU()}], "without dots"),
        ([{"forward": nn.ReLU()}], "names no method"),
        ([{"training": nn.ReLU()}], "names no method"),
        ([{3: nn.ReLU()}], "got 3"),
    ],
)
def test_refusals(layers, words):
    with pytest.raises(ArgumentError, match=words):
        nn.Sequential(*layers)


# ---- ModuleList -----------------------------------------------------------------------------


def test_module_list():
    a, b, c = nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)
    layers = nn.ModuleList([a, b])
    assert layers.append(c) is layers
    assert len(layers) == 3 and list(layers) == [a, b, c]
    assert layers[0] is a and layers[-1] is c and layers["1"] is b
    assert isinstance(layers[:2], nn.ModuleList) and list(layers[:2]) == [a, b]
    assert [n for n, _ in layers.named_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert c.weight.name == "2.weight"
    layers.extend(nn.ReLU() for _ in range(9))
    assert len(layers) == 12 and repr(layers[11]) == "ReLU()"
    assert len(nn.ModuleList()) == 0
    with pytest.raises(ArgumentError, match="no forward"):
        layers(tg.ones((1, 2)))


def test_a_module_list_as_an_attribute():
    class Net(nn.Module):
        def __init__(self):
            self.blocks = nn.ModuleList([nn.Linear(2, 2) for _ in range(2)])
            self.head = nn.Linear(2, 1)

    net = Net()
    assert [n for n, _ in net.named_parameters()][::2] == [
        "blocks.0.weight",
        "blocks.1.weight",
        "head.weight",
    ]
    assert net.blocks[1].bias.name == "blocks.1.bias"
    net.eval()
    assert not net.blocks[1].training


@pytest.mark.parametrize(
    ("modules", "words"),
    [
        ([tg.relu], "ModuleList: layer 0: expected a Module, got relu"),
        ([nn.ReLU(), nn.ReLU], "layer 1: expected a Module, got the class ReLU"),
        (nn.Linear(1, 1), "an iterable of Modules, got Linear"),
    ],
)
def test_module_list_refusals(modules, words):
    with pytest.raises(ArgumentError, match=words):
        nn.ModuleList(modules)


# ---- Residual -------------------------------------------------------------------------------


def test_residual_adds_what_it_was_given():
    inner = nn.Linear(3, 3, dtype="float64")
    x = np.random.default_rng(0).standard_normal((4, 3))
    expected = x + (np.clip(x, 0, None) @ inner.weight.value.T + inner.bias.value)
    block = nn.Residual(nn.ReLU(), inner)
    np.testing.assert_allclose(block(tg.Tensor(x)).value, expected, rtol=1e-12)
    assert [n for n, _ in block.named_parameters()] == ["body.1.weight", "body.1.bias"]


def test_residual_with_a_shortcut():
    inner, around = nn.Linear(3, 2, dtype="float64"), nn.Linear(3, 2, bias=False, dtype="float64")
    x = np.random.default_rng(0).standard_normal((4, 3))
    expected = x @ around.weight.value.T + x @ inner.weight.value.T + inner.bias.value
    block = nn.Residual(inner, shortcut=around)
    np.testing.assert_allclose(block(tg.Tensor(x)).value, expected, rtol=1e-12)
    assert [n for n, _ in block.named_parameters()] == [
        "body.0.weight",
        "body.0.bias",
        "shortcut.weight",
    ]


def test_the_gradient_passes_a_residual_block_unchanged_beside_its_layers():
    block = nn.Residual(nn.Linear(2, 2))
    block.body[0].weight.value[...] = 0
    x = tg.Tensor([[1.0, 2.0]], requires_grad=True)
    block(x).backward([[3.0, 5.0]])
    assert x.grad.tolist() == [[3.0, 5.0]]


def test_residual_refusals():
    with pytest.raises(ShapeError, match=r"Residual: x: .*\(4, 1\), got \(4, 3\).*shortcut="):
        nn.Residual(nn.Linear(3, 1))(tg.ones((4, 3)))
    with pytest.raises(ArgumentError, match="Residual: shortcut: expected a Module, got relu"):
        nn.Residual(nn.ReLU(), shortcut=tg.relu)
    with pytest.raises(ArgumentError, match="layer 0: expected a Module"):
        nn.Residual(tg.relu)
    assert nn.Residual()(tg.ones(2)).value.tolist() == [2, 2], "without layers f is the identity"


# ---- lists that change, dicts, lists of parameters ----------------------------------------------


def numbered(count):
    return [nn.Linear(1, 1) for _ in range(count)]


@pytest.mark.parametrize("kind", [nn.Sequential, nn.ModuleList])
def test_members_are_put_in_replaced_and_taken_out_as_of_a_list(kind):
    a, b, c, d, e = numbered(5)
    members = kind(a, b) if kind is nn.Sequential else kind([a, b])
    expected = [a, b]
    assert members.append(c) is members and members.insert(1, d) is members
    expected[1:1] = [d]
    expected.append(c)
    assert list(members) == expected and list(members.members()) == ["0", "1", "2", "3"]
    members[-1] = e
    expected[-1] = e
    assert list(members) == expected
    del members[0]
    assert members.pop(1) is expected.pop(2) and list(members) == expected[1:]
    del members[:]
    assert len(members) == 0
    members.extend([a, b])
    assert [name for name, _ in members.named_parameters()] == [
        "0.weight", "0.bias", "1.weight", "1.bias",
    ]  # fmt: skip


def test_names_stay_with_their_layers():
    a, b, c = numbered(3)
    net = nn.Sequential({"first": a, "last": b})
    net.insert(1, c)
    assert list(net.members().items()) == [("first", a), ("1", c), ("last", b)]
    net["first"] = b
    assert net[0] is b


@pytest.mark.parametrize("index", [5, -4, "hidden"])
def test_a_place_that_is_not_there(index):
    net = nn.Sequential(*numbered(3))
    before = list(net)
    with pytest.raises((IndexError, ArgumentError), match="Sequential: index"):
        net[index] = nn.ReLU()
    assert list(net) == before


def test_what_is_no_layer_leaves_the_list_as_it_was():
    net = nn.Sequential(*numbered(2))
    before = net.members()
    for change in (
        lambda: net.insert(0, tg.relu),
        lambda: net.append(3),
        lambda: net.__setitem__(0, nn.ReLU),
        lambda: net.extend([nn.ReLU(), None]),
    ):
        with pytest.raises(ArgumentError, match="expected a Module"):
            change()
        assert net.members() == before


@pytest.mark.parametrize("kind", [nn.Sequential, nn.ModuleList])
def test_a_sum_of_lists(kind):
    a, b, c = numbered(3)
    first = kind(a) if kind is nn.Sequential else kind([a])
    others, wrong = [b, c], [3]
    both = first + others
    assert type(both) is kind and list(both) == [a, b, c] and list(first) == [a]
    first += kind(c) if kind is nn.Sequential else kind([c])
    assert list(first) == [a, c]
    with pytest.raises(ArgumentError, match="expected a Module"):
        _ = first + wrong


def test_a_dict_of_layers():
    a, b = numbered(2)
    layers = nn.ModuleDict({"a": a, "b": b})
    assert layers["a"] is a is layers.a and "b" in layers and "c" not in layers and len(layers) == 2
    assert list(layers) == list(layers.keys()) == ["a", "b"] and list(layers.values()) == [a, b]
    layers["b"] = a
    layers.update([("c", b)])
    assert dict(layers.items()) == {"a": a, "b": a, "c": b}
    assert [name for name, _ in layers.named_parameters()] == [
        "a.weight", "a.bias", "c.weight", "c.bias",
    ]  # fmt: skip
    assert layers.pop("a") is a
    del layers["b"]
    assert list(layers) == ["c"]
    kept = nn.ModuleDict(layers.items())
    kept.clear()
    assert len(kept) == 0 and kept.state_dict() == {} and len(layers) == 1
    with pytest.raises(ArgumentError, match=r"ModuleDict: index: expected one of \['c'\], got 'a'"):
        layers["a"]
    with pytest.raises(ArgumentError, match="a word without dots that names no method"):
        layers["keys"] = a
    with pytest.raises(ArgumentError, match="layer d: expected a Module"):
        layers["d"] = tg.relu


def test_lists_and_dicts_of_parameters():
    p, q = nn.Parameter([1.0]), nn.Parameter([2.0])
    several = nn.ParameterList([p]).append(q)
    assert list(several.parameters()) == [p, q] and several[1] is q
    assert [x.item() for x in several] == [1, 2]
    named = nn.ParameterDict({"p": p})
    named["q"] = q
    assert list(named.state_dict()) == ["p", "q"] and named.q is q
    for container in (several, named):
        with pytest.raises(ArgumentError, match=r"parameter .*expected a Parameter.*nn.Parameter"):
            container["0" if container is several else "x"] = tg.ones(1)
