"""SGD against the published formula, written for one number with Python floats."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import tinygraph as tg


def sgd_of_one_number(
    value, grads, lr, momentum=0.0, weight_decay=0.0, dampening=0.0, nesterov=False
):
    """All values that one weight takes, by the formula in PyTorch's documentation."""
    values, buffer = [], None
    for grad in grads:
        g = grad + weight_decay * value
        if momentum != 0:
            buffer = g if buffer is None else momentum * buffer + (1 - dampening) * g
            g = g + momentum * buffer if nesterov else buffer
        value = value - lr * g
        values.append(value)
    return values


SETTINGS = [
    {"lr": 0.1},
    {"lr": 0.0},
    {"lr": 0.5, "weight_decay": 0.01},
    {"lr": 0.1, "momentum": 0.9},
    {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1},
    {"lr": 0.1, "momentum": 0.5, "dampening": 0.25},
    {"lr": 0.1, "momentum": 0.5, "dampening": 1.0},
    {"lr": 0.1, "momentum": 0.5, "dampening": 0.25, "weight_decay": 0.1},
    {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_several_steps_equal_the_formula(settings, dtype, device):
    rng = np.random.default_rng(3)
    start, grads = rng.standard_normal((2, 3)), rng.standard_normal((5, 2, 3))
    w = tg.Parameter(start, dtype=dtype, device=device)
    array = w.value
    sgd = tg.optim.SGD([w], **settings)
    for step in range(5):
        w.grad = grads[step].astype(dtype)
        before = w.grad.copy()
        sgd.step()
        so_far = grads[: step + 1]
        expected = [
            [sgd_of_one_number(start[i, j], so_far[:, i, j], **settings)[-1] for j in range(3)]
            for i in range(2)
        ]
        np.testing.assert_allclose(w.value, expected, rtol=1e-5 if dtype == np.float32 else 1e-12)
        np.testing.assert_array_equal(w.grad, before)
    assert w.value is array, "the step is in place"
    assert w.dtype == dtype


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_the_kernel_equals_numpy_beyond_one_block(settings):
    """1000 elements: four blocks, the last one in part; the gradient in another memory layout."""
    rng = np.random.default_rng(4)
    start, grads = rng.standard_normal((20, 50)), rng.standard_normal((4, 20, 50))
    weights = {}
    for device in ("cpu", "emulator"):
        w = weights[device] = tg.Parameter(start, dtype=np.float64, device=device)
        sgd = tg.optim.SGD([w], **settings)
        for grad in grads:
            w.grad = np.asfortranarray(grad)
            sgd.step()
    np.testing.assert_allclose(
        weights["emulator"].value, weights["cpu"].value, rtol=1e-13, atol=1e-15
    )


def test_the_kernel_under_the_checker():
    """The momentum buffer of the first step is uninitialised memory: written, and never read."""
    for settings in SETTINGS:
        w = tg.Parameter(np.ones(300), device="emulator")
        sgd = tg.optim.SGD([w], **settings)
        with tg.cuda.checking():
            for _ in range(2):
                w.grad = np.ones(300)
                sgd.step()


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
    with pytest.raises(tg.errors.DeviceError, match="after model.to"):
        sgd.step()


def test_by_hand():
    """lr 0.5, momentum 0.5, from 1 with gradients 2, 2, 2: b = 2, 3, 3.5."""
    w = tg.Parameter([1.0])
    sgd = tg.optim.SGD([w], lr=0.5, momentum=0.5)
    seen = []
    for _ in range(3):
        w.grad = np.array([2.0], np.float32)
        sgd.step()
        seen.append(w.item())
    assert seen == [0.0, -1.5, -3.25]


def test_descends_to_the_minimum_of_a_parabola():
    """f = (w - 3)**2 has the step w - 3 -> (1 - 2 lr) (w - 3): with lr 0.25 it halves."""
    w = tg.Parameter([11.0], dtype="float64")
    sgd = tg.optim.SGD([w], lr=0.25)
    for n in range(1, 6):
        sgd.zero_grad()
        tg.mse_loss(w, np.array([3.0])).backward()
        sgd.step()
        assert w.item() == pytest.approx(3 + 8 / 2**n, rel=1e-15)


@pytest.mark.parametrize("number", [np.float64(0.1), np.float32(0.1), np.array(0.1)])
def test_numpy_hyper_parameters_do_not_promote(number):
    w = tg.Parameter([1.0, 2.0])
    sgd = tg.optim.SGD([w], lr=number, momentum=number, weight_decay=number)
    for _ in range(2):
        w.grad = np.ones(2, np.float32)
        sgd.step()
    sgd.groups[0]["lr"] = np.float64(0.01)
    sgd.step()
    assert w.dtype == np.float32
    assert sgd.state["0.0"]["momentum_buffer"].dtype == np.float32


def test_a_new_learning_rate_counts_at_the_next_step():
    w = tg.Parameter([1.0])
    sgd = tg.optim.SGD([w], lr=1.0)
    w.grad = np.array([1.0], np.float32)
    sgd.step()
    sgd.groups[0]["lr"] = 0.25
    sgd.step()
    assert w.item() == -0.25
    sgd.groups[0]["lr"] = -1.0
    with pytest.raises(tg.errors.ArgumentError, match="lr"):
        sgd.step()
    assert w.item() == -0.25


def test_the_steady_state_makes_no_arrays():
    w = [tg.Parameter(np.ones(10_000, np.float32)) for _ in range(2)]
    sgd = tg.optim.SGD(w, lr=0.1, momentum=0.9, weight_decay=0.1, nesterov=True)
    for p in w:
        p.grad = np.ones(10_000, np.float32)
    sgd.step()
    sgd.step()
    tracemalloc.start()
    for _ in range(5):
        sgd.step()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000, "an array of a parameter's size would be 40 kB"


def test_scratch_memory_is_not_shared_between_values(device):
    """Parameters of several sizes and dtypes share scratch memory; their updates must not."""
    shapes = [(3,), (2, 4), (), (1,), (0, 3)]
    dtypes = ("float32", "float64")
    params = [tg.Parameter(np.ones(s), dtype=t, device=device) for s in shapes for t in dtypes]
    sgd = tg.optim.SGD(params, lr=0.5, weight_decay=1.0)
    for i, p in enumerate(params):
        p.grad = np.full(p.shape, i, p.dtype)
    sgd.step()
    for i, p in enumerate(params):
        np.testing.assert_array_equal(p.value, np.full(p.shape, 1 - 0.5 * (i + 1), p.dtype))


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"lr": -0.1}, "lr"),
        ({"lr": float("nan")}, "lr"),
        ({"lr": float("inf")}, "lr"),
        ({"lr": "0.1"}, "lr"),
        ({"lr": True}, "lr"),
        ({"lr": None}, "lr"),
        ({"lr": 0.1, "momentum": -0.5}, "momentum"),
        ({"lr": 0.1, "weight_decay": -1}, "weight_decay"),
        ({"lr": 0.1, "dampening": -1}, "dampening"),
        ({"lr": 0.1, "nesterov": True}, "nesterov"),
        ({"lr": 0.1, "nesterov": True, "momentum": 0.9, "dampening": 0.1}, "nesterov"),
    ],
    ids=str,
)
def test_bad_hyper_parameters(settings, word):
    with pytest.raises(tg.errors.ArgumentError, match=f"SGD: {word}"):
        tg.optim.SGD([tg.Parameter([1.0])], **settings)
