"""Every optimiser against its published formula in Python floats, and against PyTorch's numbers."""

from __future__ import annotations

import inspect
import tracemalloc
import warnings

import numpy as np
import pytest

import tinygraph as tg
from tests.optim.expected import RULES, TORCH
from tinygraph.base.errors import ArgumentError, CheckpointError, DeviceError

SGD = [
    {"lr": 0.1},
    {"lr": 0.0},
    {"lr": 0.5, "weight_decay": 0.01},
    {"lr": 0.1, "momentum": 0.5, "dampening": 1.0},
    {"lr": 0.1, "momentum": 0.5, "dampening": 0.25, "weight_decay": 0.1},
    {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
]
LION = [{}, {"lr": 0.1, "weight_decay": 0.5}, {"lr": 0.25, "betas": (0.5, 0.75)}]
CASES = [
    *((c["optimizer"], c["settings"]) for c in TORCH["cases"]),
    *(("SGD", settings) for settings in SGD),
    *(("Lion", settings) for settings in LION),
]
NEEDED = {"SGD": {"lr": 0.5}}  # without a default


def make(name, params, settings):
    return getattr(tg.optim, name)(params, **settings)


def run(name, settings, start, grads, dtype="float64", device="cpu"):
    """The values after each step."""
    w = tg.Parameter(start, dtype=dtype, device=device)
    array, there, here = w.value, w.device.from_numpy, w.device.to_numpy
    optimizer = make(name, [w], settings)
    seen = []
    for grad in grads:
        w.grad = there(np.array(grad, dtype))
        optimizer.step()
        np.testing.assert_array_equal(here(w.grad), np.array(grad, dtype))
        seen.append(here(w.value).copy())
    assert w.value is array, "the step is in place"
    assert all(
        a.dtype == dtype for s in optimizer.state.values() for a in s.values() if w.device.owns(a)
    )
    return np.array(seen)


@pytest.mark.parametrize("case", TORCH["cases"], ids=lambda c: f"{c['optimizer']}{c['settings']}")
def test_equals_pytorch(case, every_device):
    start, grads = TORCH["start"], TORCH["grads"]
    seen = run(case["optimizer"], case["settings"], start, grads, device=every_device)
    np.testing.assert_allclose(seen, case["values"], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("float64", 1e-10)])
@pytest.mark.parametrize(("name", "settings"), CASES, ids=str)
def test_equals_the_formula(name, settings, dtype, tolerance, every_device):
    rng = np.random.default_rng(3)
    start, grads = rng.standard_normal((2, 3)), rng.standard_normal((5, 2, 3))
    grads[0, 0, 0] = 0.0
    seen = run(name, settings, start, grads, dtype, every_device)
    for i in np.ndindex(2, 3):
        expected = list(RULES[name](start[i], [g[i] for g in grads], **settings))
        np.testing.assert_allclose(
            seen[(slice(None), *i)], expected, rtol=tolerance, atol=tolerance
        )


@pytest.mark.parametrize("name", sorted(set(RULES) - {"SGD"}))
def test_defaults_are_those_of_the_formula(name):
    """The reference rules have PyTorch's defaults, for the JSON data holds a case without any."""
    signature = inspect.signature(getattr(tg.optim, name)).parameters
    reference = inspect.signature(RULES[name.replace("W", "")]).parameters
    for key, parameter in signature.items():
        if key not in ("params", "options") and (name, key) != ("AdamW", "weight_decay"):
            assert parameter.default == reference[key].default


@pytest.mark.parametrize("name", RULES)
def test_maximize_goes_up_as_down_with_the_gradient_negated(name, every_device):
    """The run by -g is compared with the formula above; momentum is there where known."""
    taken = inspect.signature(RULES[name]).parameters
    settings = {**NEEDED.get(name, {}), "weight_decay": 0.1}
    settings |= {"momentum": 0.9} if "momentum" in taken else {}
    start, grads = np.ones(3), np.random.default_rng(5).standard_normal((4, 3)).astype(np.float32)
    up = run(name, {**settings, "maximize": True}, start, grads, "float32", every_device)
    np.testing.assert_array_equal(up, run(name, settings, start, -grads, "float32", every_device))


def test_maximize_reaches_the_top():
    """sin rises to 1 at pi / 2; a group that goes down stands beside, and ends at -pi / 2."""
    up, down = tg.Parameter([0.5]), tg.Parameter([0.5])
    climb, fall = tg.optim.SGD([up], lr=0.5, maximize=True), tg.optim.SGD([down], lr=0.5)
    for _ in range(40):
        tg.sin(tg.cat([up, down])).sum().backward()
        climb.step()
        fall.step()
        up.grad = down.grad = None
    np.testing.assert_allclose([up.item(), down.item()], [np.pi / 2, -np.pi / 2], atol=1e-4)
    other = tg.optim.SGD([up], lr=0.5)
    with pytest.raises(CheckpointError, match="group 0: expected params, lr"):
        other.load_state_dict(climb.state_dict())


@pytest.mark.parametrize("name", RULES)
def test_options_of_pytorch_that_change_nothing(name):
    w = tg.Parameter([1.0])
    taken = make(name, [w], {"foreach": True, "fused": None, "capturable": True})
    assert taken.state_dict() == make(name, [w], {}).state_dict()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"differentiable": True}, "SGD: differentiable: expected False: a step is no node"),
        ({"maximize": 2}, "SGD: maximize: expected True or False, got 2"),
        ({"maximize": None}, "SGD: maximize: expected True or False, got None"),
        ({"momentun": 0.9}, "SGD: arguments: expected only params, lr, .* did you mean 'momentum'"),
        ({"foreach_": True}, "did you mean 'foreach'"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises(ArgumentError, match=words):
        tg.optim.SGD([tg.Parameter([1.0])], lr=0.1, **options)


def test_a_closure_is_called_before_the_step_and_its_loss_is_returned():
    """(w - 3)^2 from 0: the gradient is -6 at the first step, and the loss that of before it."""
    w = tg.Parameter([0.0])
    sgd = tg.optim.SGD([w], lr=0.25)

    def closure():
        sgd.zero_grad()
        loss = ((w - 3) ** 2).sum()
        loss.backward()
        return loss

    assert sgd.step(closure).item() == 9.0
    assert w.value.tolist() == [1.5]
    assert sgd.step(closure).item() == 2.25
    assert sgd.step() is None


@pytest.mark.parametrize("name", RULES)
def test_a_resumed_run_equals_one_that_never_stopped(name, every_device):
    settings = NEEDED.get(name, {})
    grads = np.random.default_rng(1).standard_normal((6, 3)).astype(np.float32)
    straight = run(name, settings, np.ones(3), grads, "float32", every_device)
    w = tg.Parameter(np.ones(3, np.float32), name="w", device=every_device)
    first = make(name, [w], settings)
    for grad in grads[:3]:
        w.grad = w.device.from_numpy(grad)
        first.step()
    second = make(name, [w], {**settings, "lr": 77.0})
    second.load_state_dict(first.state_dict())
    for grad in grads[3:]:
        w.grad = w.device.from_numpy(grad)
        second.step()
    np.testing.assert_array_equal(w.numpy(), straight[-1])


def test_a_changed_learning_rate_counts_at_the_next_step(device):
    for name in RULES:
        w = tg.Parameter([1.0], device=device)
        optimizer = make(name, [w], {"lr": 1.0})
        w.grad = np.ones(1, np.float32)
        optimizer.step()
        optimizer.groups[0]["lr"] = 0.0
        before = w.item()
        optimizer.step()
        assert w.item() == before, name
        optimizer.groups[0]["lr"] = -1.0
        with pytest.raises(ArgumentError, match="lr"):
            optimizer.step()
        assert w.item() == before, name


def test_infinite_weights_without_decay(device):
    """A term with the factor 0 is left out: 0 * inf would be NaN."""
    w = tg.Parameter([np.inf, 1.0], device=device)
    w.grad = np.array([1.0, 1.0], np.float32)
    tg.optim.SGD([w], lr=0.5).step()
    np.testing.assert_array_equal(w.value, [np.inf, 0.5])


def test_a_parameter_that_was_moved_after_the_optimiser_was_made():
    w = tg.Parameter([1.0], name="w")
    sgd = tg.optim.SGD([w], lr=0.5)
    w.device = tg.Tensor(0.0, device="emulator").device
    w.grad = np.ones(1, np.float32)
    with pytest.raises(DeviceError, match="after model.to"):
        sgd.step()


@pytest.mark.parametrize("number", [np.float64(0.1), np.float32(0.1), np.array(0.1)])
def test_numpy_hyper_parameters_do_not_promote(number):
    w = tg.Parameter([1.0, 2.0])
    sgd = tg.optim.SGD([w], lr=number, momentum=number, weight_decay=number)
    for rate in (number, number, np.float64(0.01)):
        sgd.groups[0]["lr"] = rate
        w.grad = np.ones(2, np.float32)
        sgd.step()
    assert w.dtype == sgd.state["0.0"]["momentum_buffer"].dtype == np.float32


def test_a_parameter_that_joins_late_has_a_step_count_of_its_own(device):
    a, b = [tg.Parameter([0.0], name=name, device=device) for name in "ab"]
    adam = tg.optim.Adam([a, b], lr=0.5)
    for _ in range(3):
        a.grad = np.ones(1, np.float32)
        adam.step()
    b.grad = np.ones(1, np.float32)
    adam.step()
    assert b.item() == pytest.approx(-0.5, rel=1e-6), "its first step is lr, by the correction"
    assert adam.state["a"]["step"] == 4 and adam.state["b"]["step"] == 1


@pytest.mark.parametrize(("name", "settings"), CASES, ids=str)
def test_the_kernel_equals_numpy_beyond_one_block(name, settings):
    """1000 elements: four blocks, the last one in part; the gradient in another memory layout."""
    rng = np.random.default_rng(4)
    start, grads = rng.standard_normal((20, 50)), rng.standard_normal((3, 20, 50))
    grads[:, 0, :10] = 0  # roots of 0
    values, states = {}, {}
    for device in ("cpu", "emulator"):
        w = tg.Parameter(start, dtype=np.float64, device=device, name="w")
        optimizer = make(name, [w], settings)
        for grad in grads:
            w.grad = np.asfortranarray(grad)
            optimizer.step()
        values[device], states[device] = w.value, optimizer.state_dict()["state"].get("w", {})
    np.testing.assert_allclose(values["emulator"], values["cpu"], rtol=1e-12, atol=1e-14)
    assert states["emulator"].keys() == states["cpu"].keys()
    for key, expected in states["cpu"].items():
        np.testing.assert_allclose(states["emulator"][key], expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("name", "settings"), CASES, ids=str)
def test_the_kernel_under_the_checker(name, settings):
    w = tg.Parameter(np.ones(300), device="emulator")
    optimizer = make(name, [w], settings)
    with tg.cuda.checking():
        for _ in range(2):
            w.grad = np.ones(300)
            optimizer.step()


def test_a_nan_of_the_past_stays_the_largest(device):
    """amsgrad: np.maximum gives NaN where either is NaN, whichever step it came in."""
    w = tg.Parameter([1.0, 1.0], device=device)
    adam = tg.optim.Adam([w], amsgrad=True)
    for grad in ([2.0, np.nan], [1.0, 1.0]):
        w.grad = np.array(grad, np.float32)
        adam.step()
    largest = adam.state["0.0"]["max_exp_avg_sq"]
    np.testing.assert_allclose(largest, [0.004996, np.nan], rtol=1e-4)


@pytest.mark.parametrize(("name", "settings"), CASES, ids=str)
def test_the_steady_state_makes_no_arrays(name, settings):
    params = [tg.Parameter(np.ones(10_000, np.float32)) for _ in range(2)]
    optimizer = make(name, params, settings)
    for p in params:
        p.grad = np.ones(10_000, np.float32)
    optimizer.step()
    optimizer.step()
    tracemalloc.start()
    for _ in range(5):
        optimizer.step()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000, "an array of a parameter's size would be 40 kB"


@pytest.mark.parametrize("name", RULES)
def test_shapes_dtypes_and_odd_numbers(name, device):
    """Parameters of several sizes share scratch memory; NaN stays where it is and warns nobody."""
    shapes = [(3,), (2, 4), (), (1,), (0, 3)]
    params = [
        tg.Parameter(np.ones(s), dtype=t, device=device)
        for s in shapes
        for t in ("float32", "float64")
    ]
    optimizer = make(name, params, NEEDED.get(name, {}))
    for i, p in enumerate(params, start=1):
        p.grad = np.full(p.shape, i, p.dtype)
    params[0].grad[1] = np.nan
    params[1].grad[1] = np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step()
        optimizer.step()
    assert np.isnan(params[0].value).tolist() == [False, True, False]
    for i, p in enumerate(params, start=1):
        _, expected = RULES[name](1.0, [float(i)] * 2, **NEEDED.get(name, {}))
        numbers = p.value[::2] if i <= 2 else p.value
        np.testing.assert_allclose(numbers, np.full(numbers.shape, expected), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        *(("SGD", {"lr": lr}, "SGD: lr") for lr in (-0.1, np.nan, np.inf, "0.1", True, None)),
        ("SGD", {"lr": 0.1, "momentum": -0.5}, "SGD: momentum"),
        ("SGD", {"lr": 0.1, "weight_decay": -1}, "SGD: weight_decay"),
        ("SGD", {"lr": 0.1, "dampening": -1}, "SGD: dampening"),
        ("SGD", {"lr": 0.1, "nesterov": True}, "SGD: nesterov"),
        ("SGD", {"lr": 1, "nesterov": True, "momentum": 0.9, "dampening": 0.1}, "SGD: nesterov"),
        ("Adadelta", {"rho": 1.0}, "rho: expected a number from 0 to below 1, got 1.0"),
        ("Adadelta", {"rho": -0.1}, "rho"),
        ("Adadelta", {"eps": -1}, "eps"),
        ("Adadelta", {"lr": -1}, "lr"),
        ("Adadelta", {"weight_decay": float("nan")}, "weight_decay"),
        ("Adagrad", {"lr_decay": -1}, "lr_decay"),
        ("Adagrad", {"initial_accumulator_value": -1}, "initial_accumulator_value"),
        ("Adagrad", {"eps": "small"}, "eps"),
        ("Adam", {"betas": (0.9, 1.0)}, "betas"),
        ("Adam", {"betas": (-0.1, 0.9)}, "betas"),
        ("Adam", {"betas": 0.9}, "betas: expected two numbers, got 0.9"),
        ("Adam", {"betas": (0.9,)}, "betas: expected two numbers"),
        ("Adam", {"betas": ("a", "b")}, "betas"),
        ("Adam", {"eps": -1e-8}, "eps"),
        ("AdamW", {"weight_decay": -1}, "AdamW: weight_decay"),
        ("AdamW", {"lr": None}, "AdamW: lr"),
        ("Lion", {"betas": (0.9,)}, "Lion: betas: expected two numbers"),
        ("Lion", {"betas": (0.9, 1.0)}, "betas"),
        ("Lion", {"weight_decay": -1}, "Lion: weight_decay"),
        ("RMSprop", {"alpha": 1}, "alpha"),
        ("RMSprop", {"momentum": -0.5}, "momentum"),
    ],
    ids=str,
)
def test_bad_hyper_parameters(name, settings, words):
    with pytest.raises(ArgumentError, match=words):
        make(name, [tg.Parameter([1.0])], settings)
