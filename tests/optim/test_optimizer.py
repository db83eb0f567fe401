"""What every optimiser inherits: groups, names, saving and loading, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn
from tinygraph.base.errors import (
    ArgumentError,
    CheckpointError,
    DeviceError,
    DtypeError,
    ShapeError,
)
from tinygraph.optim import SGD, Optimizer


def ones(*shape, name=None):
    return tg.Parameter(np.ones(shape, np.float32), name=name)


def give_grads(params, number=1.0):
    for p in params:
        p.grad = np.full(p.shape, number, p.dtype)


# ---- parameters and groups ------------------------------------------------------------------


def test_groups_take_defaults_and_their_own_numbers():
    a, b = ones(2, name="a"), ones(2, name="b")
    sgd = SGD([{"params": [a]}, {"params": [("bias", b)], "lr": 0.5}], lr=0.25)
    give_grads([a, b])
    sgd.step()
    assert a.value.tolist() == [0.75, 0.75]
    assert b.value.tolist() == [0.5, 0.5]
    assert [g["lr"] for g in sgd.groups] == [0.25, 0.5]
    assert [g["params"] for g in sgd.groups] == [[a], [b]]
    assert list(sgd.state) == ["a", "bias"]


def test_a_parameter_without_gradient_stays():
    a, b = ones(2), ones(2)
    sgd = SGD([a, b], lr=1.0, momentum=0.9, weight_decay=0.1)
    give_grads([a])
    sgd.step()
    assert b.value.tolist() == [1, 1]
    assert sgd.state["0.1"] == {}


def test_zero_grad():
    a = ones(2)
    give_grads([a])
    SGD([a], lr=1.0).zero_grad()
    assert a.grad is None
    give_grads([a])
    SGD([a]).zero_grad(set_to_none=True)
    assert a.grad is None


def test_arguments_of_sgd_stand_in_pytorchs_order():
    group = SGD([ones(1)], 0.1, 0.9, 0.25, 0.5, False).groups[0]
    assert (group["lr"], group["momentum"]) == (0.1, 0.9)
    assert (group["dampening"], group["weight_decay"], group["nesterov"]) == (0.25, 0.5, False)
    assert SGD([ones(1)]).groups[0]["lr"] == 1e-3


def test_a_group_may_be_one_parameter():
    a, b = ones(1), ones(1)
    sgd = SGD([{"params": a, "lr": 0.5}, {"params": [b]}], lr=1.0)
    assert [group["params"] for group in sgd.groups] == [[a], [b]]
    with pytest.raises(ArgumentError, match="expected an iterable of Parameters, got Parameter"):
        SGD(a, lr=1.0)


@pytest.mark.parametrize(
    ("params", "names"),
    [
        (lambda: [ones(1), ones(1)], ["0.0", "0.1"]),
        (lambda: [ones(1, name="w"), ones(1)], ["w", "0.1"]),
        (lambda: [ones(1, name="w"), ones(1, name="w")], ["0.0", "0.1"]),
        (lambda: [("x", ones(1, name="w")), ("y", ones(1, name="w"))], ["x", "y"]),
        (lambda: [{"params": [ones(1)]}, {"params": [ones(1)]}], ["0.0", "1.0"]),
        (lambda: nn.Sequential(nn.Linear(1, 1)).parameters(), ["0.weight", "0.bias"]),
        (lambda: nn.Sequential(nn.Linear(1, 1)).named_parameters(), ["0.weight", "0.bias"]),
    ],
)
def test_state_goes_by_name(params, names):
    assert list(SGD(params(), lr=0.1).state) == names


P = ones(1, name="p")


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ([], "at least one Parameter, got none"),
        (iter([]), "at least one Parameter, got none"),
        ([{"params": []}], "at least one Parameter, got none"),
        (P, r"got Parameter. Way out: pass a list"),
        (nn.Linear(1, 1), r"pass model.parameters\(\)"),
        ({"params": [P]}, "pass a list of groups"),
        (3, "an iterable of Parameters, got int"),
        ([tg.Tensor([1.0], requires_grad=True)], r"got a Tensor. Way out: .*tg.Parameter"),
        ([np.ones(2)], "got a ndarray"),
        ([(1, P)], "pairs"),
        ([P, P], "each Parameter once, got p more than once"),
        ([{"params": [P]}, {"params": [P]}], "each Parameter once"),
        ([("n", P), ("n", ones(1))], None),
        ([{"params": [P]}, ones(1)], "either groups or parameters"),
        ([{"params": [P], "lrr": 0.1}], "did you mean 'lr'"),
        ([{"parms": [P]}], "did you mean 'params'"),
        ([{"lr": 0.1}], "a key 'params'"),
        ([{"params": [P], "lr": -1}], "lr: expected a number of at least 0, got -1"),
    ],
)
def test_bad_parameters(params, words):
    if words is None:  # names that clash give way to numbers
        assert list(SGD(params, lr=0.1).state) == ["0.0", "0.1"]
        return
    with pytest.raises(ArgumentError, match=words):
        SGD(params, lr=0.1)


def test_a_gradient_of_another_shape_is_refused():
    a = ones(2, 3, name="a")
    with pytest.raises(ShapeError, match=r"grad: a: expected an array of shape \(2, 3\).*\(3,\)"):
        a.grad = np.ones(3, np.float32)
    assert a.grad is None
    SGD([a], lr=1.0).step()
    assert a.value.tolist() == [[1, 1, 1], [1, 1, 1]]


@pytest.mark.parametrize("given", [[1.0, 2.0], (1, 2), tg.Tensor([1.0, 2.0]), np.float32([1, 2])])
def test_a_gradient_that_is_assigned(given):
    a = ones(2, name="a")
    a.grad = given
    SGD([a], lr=0.5).step()
    assert type(a.grad) is np.ndarray and a.grad.dtype == np.float32
    assert a.value.tolist() == [0.5, 0.0]


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        (np.ones(2), DtypeError, r"expected an array of float32, got float64.*astype\('float32'\)"),
        (np.ones(2, int), DtypeError, "got int64"),
        ([1.0], ShapeError, r"shape \(2,\).*got \(1,\)"),
        (1.0, ShapeError, r"got \(\)"),
        ("text", DtypeError, "expected numbers"),
        ([1.0, None], DtypeError, "got object|expected numbers"),
        (object(), DtypeError, "expected numbers"),
        (np.ma.array([1.0, 2.0], "f4", mask=[0, 1]), DtypeError, r"mask.*x\.filled\(0\.0\)"),
        (tg.ones(2, device="emulator"), DeviceError, r"a tensor on cpu.*x\.to\('cpu'\)"),
    ],
)
def test_a_gradient_that_does_not_fit_is_refused_where_it_is_assigned(given, error, says):
    a = ones(2, name="a")
    with pytest.raises(error, match=says):
        a.grad = given
    assert a.grad is None
    a.grad = np.ones(2, np.float32)
    a.grad = None
    assert a.grad is None


def test_a_rule_without_a_kernel_is_refused_where_kernels_run():
    class NumpyOnly(Optimizer):
        def update(self, value, grad, state, scratch, hyper):
            value -= grad

    w = tg.Parameter([1.0], device="emulator")
    w.grad = np.ones(1, np.float32)
    with pytest.raises(DeviceError, match=r"NumpyOnly: no kernel .*Way out: define update_kernel"):
        NumpyOnly([w]).step()
    np.testing.assert_array_equal(w.value, [1.0])


# ---- saving and loading ---------------------------------------------------------------------


def trained(momentum=0.5, steps=2):
    params = [ones(2, name="a"), ones(3, name="b")]
    sgd = SGD(params, lr=0.5, momentum=momentum)
    for _ in range(steps):
        give_grads(params)
        sgd.step()
    return params, sgd


def test_state_dict_is_plain_and_copied():
    _, sgd = trained()
    saved = sgd.state_dict()
    assert saved["optimizer"] == "SGD"
    assert saved["groups"] == [
        {
            "params": ["a", "b"],
            "lr": 0.5,
            "momentum": 0.5,
            "weight_decay": 0.0,
            "dampening": 0.0,
            "nesterov": False,
        }
    ]
    assert saved["state"]["a"]["momentum_buffer"].tolist() == [1.5, 1.5]  # 1, then 0.5 * 1 + 1
    saved["state"]["a"]["momentum_buffer"][:] = 9
    saved["groups"][0]["lr"] = 9
    assert sgd.state["a"]["momentum_buffer"].tolist() == [1.5, 1.5]
    assert sgd.groups[0]["lr"] == 0.5


def test_a_resumed_run_equals_one_that_never_stopped():
    straight, sgd = trained(steps=4)
    first, sgd = trained(steps=2)
    params = [ones(2, name="a"), ones(3, name="b")]
    for p, q in zip(params, first, strict=True):
        p.value[...] = q.value
    resumed = SGD(params, lr=123.0)
    resumed.load_state_dict(sgd.state_dict())
    for _ in range(2):
        give_grads(params)
        resumed.step()
    for p, q in zip(params, straight, strict=True):
        np.testing.assert_array_equal(p.value, q.value)


def test_loading_copies():
    _, sgd = trained()
    saved = sgd.state_dict()
    _, other = trained(steps=0)
    other.load_state_dict(saved)
    saved["state"]["a"]["momentum_buffer"][:] = 9
    assert other.state["a"]["momentum_buffer"].tolist() == [1.5, 1.5]


def test_what_was_saved_before_the_first_step_empties_the_state():
    _, fresh = trained(steps=0)
    _, sgd = trained()
    sgd.load_state_dict(fresh.state_dict())
    assert sgd.state == {"a": {}, "b": {}}


def test_all_faults_are_listed_and_nothing_changes():
    _, sgd = trained()
    saved = sgd.state_dict()
    saved["groups"][0] = {**saved["groups"][0], "lr": -3.0, "params": ["a", "c"]}
    saved["state"]["a"]["momentum_buffer"] = np.ones(3, np.float32)
    saved["state"]["b"] = {"momentum_bufer": np.ones(3, np.float32)}
    saved["state"]["bb"] = {}
    with pytest.raises(CheckpointError) as caught:
        sgd.load_state_dict(saved)
    message = str(caught.value)
    for part in (
        "group 0: expected the parameters ['a', 'b'], got ['a', 'c']",
        "lr: expected a number of at least 0, got -3.0",
        "a: momentum_buffer: expected float32 (2,), got float32 (3,)",
        "b: momentum_bufer: unknown did you mean 'momentum_buffer'?",
        "unexpected  bb",
        "Nothing was changed",
    ):
        assert part in message
    assert sgd.groups[0]["lr"] == 0.5
    assert sgd.state["a"]["momentum_buffer"].tolist() == [1.5, 1.5]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: None, "not what state_dict"),
        (lambda s: {"state": {}}, "not what state_dict"),
        (lambda s: {**s, "optimizer": "Adam"}, "saved by Adam"),
        (lambda s: {**s, "groups": []}, "expected 1 groups, got 0"),
        (lambda s: {**s, "groups": [{"params": ["a", "b"], "lr": 1.0}]}, "group 0: expected"),
        (lambda s: {**s, "state": {"a": {"momentum_buffer": 3.0}}}, "an array, got float"),
        (lambda s: {**s, "state": {"a": {"momentum_buffer": np.ones(2)}}}, "got float64"),
    ],
)
def test_states_that_do_not_fit(change, words):
    _, sgd = trained()
    with pytest.raises(CheckpointError, match=words):
        sgd.load_state_dict(change(sgd.state_dict()))
    assert sgd.state["a"]["momentum_buffer"].tolist() == [1.5, 1.5]


# ---- an optimiser of one's own --------------------------------------------------------------


class Counting(Optimizer):
    """Takes the step number off the value: state with a number, hyper-parameters in a pair."""

    numbers = ("step",)

    def __init__(self, params, betas=(0.5, 0.25)):
        super().__init__(params, betas=betas)

    def update(self, value, grad, state, scratch, hyper):
        state["step"] = state.get("step", 0) + 1
        value -= hyper["betas"][0] * state["step"]


def test_an_own_optimiser_saves_and_loads():
    w = ones(1, name="w")
    counting = Counting([w], betas=(np.float64(1.0), 0.0))
    give_grads([w])
    counting.step()
    counting.step()
    assert w.item() == 1 - 1 - 2
    saved = counting.state_dict()
    assert saved["state"] == {"w": {"step": 2}}
    saved["groups"][0]["betas"] = list(saved["groups"][0]["betas"])  # as JSON would give it back
    other = Counting([w])
    other.load_state_dict(saved)
    give_grads([w])
    other.step()
    assert w.item() == -2 - 3
    saved["state"]["w"]["step"] = "two"
    with pytest.raises(CheckpointError, match="w: step: expected a number"):
        other.load_state_dict(saved)


def test_an_optimiser_without_update_says_so():
    w = ones(1)
    give_grads([w])
    with pytest.raises(ArgumentError, match="define update"):
        Optimizer([w]).step()


def test_repr():
    assert repr(SGD([ones(1)], lr=0.5)) == (
        "SGD(1 parameters: lr=0.5, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False)"
    )


# ---- one more group -----------------------------------------------------------------------------


def test_a_group_that_is_added_is_as_one_that_was_there_at_first(device):
    """Settings, names, state and updates, in the middle of a training."""

    def made():
        return [tg.Parameter(np.arange(n, dtype="f4"), name=name, device=device)
                for n, name in ((3, "a"), (5, "b"), (2, None))]  # fmt: skip

    def train(optimizer, steps):
        for _ in range(steps):
            for p in optimizer.parameters.values():
                p.grad = p.device.from_numpy(np.ones(p.shape, "f4"))
            optimizer.step()

    a, b, c = made()
    grown = tg.optim.Adam([a], lr=0.1)
    train(grown, 2)
    grown.add_param_group({"params": [b, c], "lr": 0.5})
    train(grown, 3)
    a2, b2, c2 = made()
    early, late = tg.optim.Adam([a2], lr=0.1), tg.optim.Adam([b2, c2], lr=0.5)
    train(early, 5)
    train(late, 3)
    for p, q in ((a, a2), (b, b2), (c, c2)):
        np.testing.assert_array_equal(p.numpy(), q.numpy())
    assert list(grown.parameters) == list(grown.state) == ["a", "b", "1.1"]
    assert [group["lr"] for group in grown.param_groups] == [0.1, 0.5]
    again = tg.optim.Adam([{"params": [a]}, {"params": [b, c]}], lr=1.0)
    again.load_state_dict(grown.state_dict())
    assert again.param_groups[1]["lr"] == 0.5


@pytest.mark.parametrize(
    ("group", "words"),
    [
        (lambda w: {"params": [w]}, "each Parameter once, got w more than once"),
        (lambda w: {"params": [tg.Parameter([1.0])], "lr": -1}, "lr"),
        (lambda w: {"params": [tg.Parameter([1.0])], "rate": 1}, "rate"),
        (lambda w: {"lr": 1.0}, "params"),
        (lambda w: [tg.Parameter([1.0])], "params"),
    ],
)
def test_a_group_that_cannot_be_added_changes_nothing(group, words):
    w = tg.Parameter([1.0], name="w")
    sgd = tg.optim.SGD([w], lr=0.5)
    with pytest.raises(ArgumentError, match=words):
        sgd.add_param_group(group(w))
    assert len(sgd.groups) == 1 and list(sgd.parameters) == ["w"]
