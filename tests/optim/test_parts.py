"""Many parameters in one launch: how many launches, and the bits of one launch for each."""

from __future__ import annotations

import numpy as np
import pytest

import tinygraph as tg
from tests.optim.test_rules import NEEDED
from tinygraph.cuda import Kernel, recording
from tinygraph.optim import SGD, Adam, Optimizer, clip_grad_norm, clip_grad_value
from tinygraph.optim.parts import PARTS

SHAPES = [(3,), (2, 4), (), (0, 3), (300,), (257,), (20, 50), (7,), (513,), (2, 2)]
RULES = [
    ("SGD", {"weight_decay": 0.1}),
    ("SGD", {"momentum": 0.9, "nesterov": True}),
    ("Adam", {}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.1}),
    ("AdamW", {}),
    ("Adagrad", {"lr_decay": 0.1}),
    ("Adadelta", {}),
    ("RMSprop", {"centered": True, "momentum": 0.5}),
    ("RMSprop", {}),
    ("Lion", {"weight_decay": 0.1}),
]


def parameters(device, dtypes=("float32", "float64")):
    rng = np.random.default_rng(1)
    return [
        tg.Parameter(rng.standard_normal(s), dtype=d, device=device, name=f"{d}{i}")
        for i, s in enumerate(SHAPES)
        for d in dtypes
    ]


def give_gradients(members, step):
    """All but one have a gradient; some are no rows in memory."""
    rng = np.random.default_rng(step)
    for i, p in enumerate(members):
        grad = np.array(rng.standard_normal(p.shape), p.dtype, order="F")
        p.grad = None if i == step else grad


def trained(name, settings, together):
    """Values and state after three steps, by one optimiser or by one for each parameter."""
    members = parameters("emulator")
    half = len(members) // 2
    groups = [{"params": members[:half]}, {"params": members[half:], "lr": 0.25}]
    if not together:
        groups = [{**group, "params": [p]} for group in groups for p in group["params"]]
    make = getattr(tg.optim, name)
    settings = {**NEEDED.get(name, {}), **settings}
    rules = [make(some, **settings) for some in ([groups] if together else [[g] for g in groups])]
    for step in range(3):
        give_gradients(members, step)
        for rule in rules:
            rule.step()
    return members, {key: state for rule in rules for key, state in rule.state.items()}


@pytest.mark.second
@pytest.mark.parametrize(("name", "settings"), RULES, ids=str)
def test_together_the_bits_of_each_alone(name, settings):
    """Groups, two dtypes, empty parameters, late ones, more than a launch takes; checked."""
    with tg.cuda.checking():
        members, states = trained(name, settings, together=True)
    alone, states_alone = trained(name, settings, together=False)
    for p, q in zip(members, alone, strict=True):
        # Compiled for the checker, products and sums are rounded together in other places.
        np.testing.assert_allclose(p.value, q.value, rtol=1e-4, atol=1e-6)
    members, states = trained(name, settings, together=True)
    for p, q in zip(members, alone, strict=True):
        assert p.value.tobytes() == q.value.tobytes(), p.name
    assert states.keys() == states_alone.keys()
    for key, state in states.items():
        assert state.keys() == states_alone[key].keys()
        for entry, value in state.items():
            np.testing.assert_array_equal(value, states_alone[key][entry], err_msg=key)


def launches(work):
    with recording() as made:
        work()
    return [launch.kernel.name for launch in made]


@pytest.mark.second
@pytest.mark.parametrize(("name", "settings"), RULES, ids=str)
@pytest.mark.parametrize("count", [1, 8, 9, 32, 33])
def test_one_launch_for_32_parameters(name, settings, count):
    members = [tg.Parameter(np.ones(3, "f4"), device="emulator") for _ in range(count)]
    rule = getattr(tg.optim, name)(members, **{**NEEDED.get(name, {}), **settings})
    for p in members:
        p.grad = np.ones(3, "f4")
    assert len(launches(rule.step)) == -(-count // PARTS[-1])


def test_groups_share_launches_unless_more_than_the_rate_differs():
    members = [tg.Parameter(np.ones(3, "f4"), device="emulator") for _ in range(4)]
    for p in members:
        p.grad = np.ones(3, "f4")
    rates = [{"params": [p], "lr": 0.1 * i} for i, p in enumerate(members)]
    assert len(launches(SGD(rates, lr=1.0).step)) == 1
    np.testing.assert_allclose([p.value[0] for p in members], [1, 0.9, 0.8, 0.7], rtol=1e-6)
    decays = [{"params": members[:2], "weight_decay": 0.5}, {"params": members[2:]}]
    rule = SGD(decays, lr=1.0)
    assert len(launches(rule.step)) == 2
    rule.groups[0]["weight_decay"] = 0.0
    assert len(launches(rule.step)) == 1


def test_a_parameter_that_joins_late_has_a_first_launch_of_its_own():
    members = [tg.Parameter(np.ones(3, "f4"), device="emulator") for _ in range(3)]
    rule = SGD(members, lr=0.5, momentum=0.5)
    for p in members[:2]:
        p.grad = np.ones(3, "f4")
    assert len(launches(rule.step)) == 1
    members[2].grad = np.ones(3, "f4")
    assert len(launches(rule.step)) == 2
    assert len(launches(rule.step)) == 1
    assert [p.value[0] for p in members] == [-1.125, -1.125, -0.25]


def test_a_step_of_a_vgg_like_network():
    """16 parameters: one launch."""
    tg.manual_seed(0)
    layers: list[tg.nn.Module] = []
    for i in range(7):
        layers += [tg.nn.Conv2d(3 if not i else 4, 4, 3, padding=1), tg.nn.ReLU()]
    model = tg.nn.Sequential(*layers, tg.nn.Flatten(), tg.nn.Linear(64, 3)).to("emulator")
    adam = Adam(model.parameters())
    x = tg.Tensor(np.ones((2, 3, 4, 4), "f4"), device="emulator")
    tg.softmax_cross_entropy(model(x), tg.Tensor(np.array([0, 1]), device="emulator")).backward()
    assert len(list(model.parameters())) == 16
    assert launches(adam.step) == ["adam_update<float>"]


@pytest.mark.second
def test_parameters_beyond_the_largest_grid():
    """More than 1024 blocks: a thread takes several turns, beside a small parameter."""
    sizes = (3, 4_300_000, 270_001)
    values = {}
    for device in ("cpu", "emulator"):
        rng = np.random.default_rng(0)
        members = [tg.Parameter(rng.standard_normal(n), device=device) for n in sizes]
        for p in members:
            p.grad = rng.standard_normal(p.shape).astype(p.dtype)
        SGD(members, lr=0.5).step()
        norm = clip_grad_norm(members, 1.0)
        values[device] = [norm, *[p.value for p in members], *[p.grad for p in members]]
    for a, b in zip(values["cpu"], values["emulator"], strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-6)


@pytest.mark.second
@pytest.mark.parametrize(("count", "times"), [(20, 1), (33, 2)])
def test_clipping_takes_many_gradients_in_a_launch(count, times):
    members = [tg.Parameter(np.ones(300, "f4"), device="emulator") for _ in range(count)]
    for p in members:
        p.grad = np.ones(300, "f4")
    assert launches(lambda: clip_grad_norm(members, 0.1)) == [
        *["gradient_squares<float>"] * times,
        "norm_finish",
        *["scale_gradient<float>"] * times,
    ]
    assert launches(lambda: clip_grad_norm(members, 0.001, 3.0)) == [
        *["gradient_largest<float>"] * times,
        "largest_finish",
        *["gradient_powers<float>"] * times,
        "norm_finish",
        *["scale_gradient<float>"] * times,
    ]
    assert launches(lambda: clip_grad_value(members, 1e-6)) == ["clip_gradient<float>"] * times


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_squares_of_floats_neither_over_nor_underflow(scale):
    """In doubles, without the largest one taken out."""
    grads = [np.float32(scale) * np.arange(1, n, dtype="f4") for n in (3, 5000)]
    members = [tg.Parameter(np.zeros_like(g), device="emulator") for g in grads]
    for p, g in zip(members, grads, strict=True):
        p.grad = g.copy()
    expected = np.linalg.norm(np.concatenate(grads).astype(np.float64))
    assert clip_grad_norm(members, np.inf) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_parameters_that_begin_anywhere(name):
    """Views whose elements are no packs of 16 bytes get the bits of those that are; checked."""
    found = []
    for shift in (0, 1, 2):
        rng = np.random.default_rng(0)
        p = tg.Parameter(np.zeros(4099, "f4"), device="emulator")
        place = np.zeros(4102, "f4")[shift : shift + 4099]
        tg.Tensor.value.__set__(p, place)  # not a copy, as an assignment makes it
        p.value[...] = rng.standard_normal(4099)
        p.grad = np.array(rng.standard_normal(4099), "f4")
        rule = getattr(tg.optim, name)([p], lr=0.5)
        rule.step()
        with tg.cuda.checking():
            rule.step()
        found.append(p.value.copy())
    for values in found[1:]:
        np.testing.assert_array_equal(values, found[0])


@pytest.mark.second
def test_clipping_of_two_dtypes_and_other_layouts():
    found = {}
    for device in ("cpu", "emulator"):
        members = parameters(device)
        give_gradients(members, 3)
        with tg.cuda.checking():
            norms = [clip_grad_norm(members, 5.0, p) for p in (2.0, 3.0, np.inf)]
            clip_grad_value(members, 0.1)
        found[device] = norms + [p.grad for p in members if p.grad is not None]
    for a, b in zip(found["cpu"], found["emulator"], strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-7)


def test_a_rule_of_a_user_has_a_launch_for_each():
    halve = Kernel("__global__ void halve(float* x) { x[threadIdx.x] /= 2; }", "halve")

    class Halve(Optimizer):
        def update_kernel(self, device, value, grad, state, group):
            halve(1, value.size, value)

    members = [tg.Parameter(np.ones(3, "f4"), device="emulator") for _ in range(3)]
    for p in members:
        p.grad = np.ones(3, "f4")
    assert launches(Halve(members).step) == ["halve"] * 3
    assert all((p.value == 0.5).all() for p in members)
