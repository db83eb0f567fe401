"""Clipping by norm and by value, against PyTorch's numbers and by hand; accumulated gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tinygraph as tg
from tests.optim.expected import TORCH
from tinygraph.base.errors import ArgumentError
from tinygraph.optim import clip_grad_norm, clip_grad_value


def with_grads(*grads, dtype="float64", device="cpu"):
    params = []
    for grad in grads:
        p = tg.Parameter(np.zeros(np.shape(grad)), dtype=dtype, device=device)
        p.grad = p.device.from_numpy(np.array(grad, dtype))
        params.append(p)
    return params


def gradients(params):
    """On the host."""
    return [p.device.to_numpy(p.grad) for p in params]


@pytest.mark.parametrize("case", TORCH["clipped"], ids=lambda c: c["norm_type"])
def test_equals_pytorch(case, every_device):
    params = with_grads(*TORCH["grads"][1:3], device=every_device)
    norm = clip_grad_norm(params, case["max_norm"], float(case["norm_type"]))
    assert norm == pytest.approx(case["norm"], rel=1e-12)
    for grad, expected in zip(gradients(params), case["grads"], strict=True):
        np.testing.assert_allclose(grad, expected, rtol=1e-12)


def test_by_hand(every_device):
    params = with_grads([[3.0], [0.0]], [4.0], dtype="float32", device=every_device)
    arrays = [p.grad for p in params]
    assert clip_grad_norm(iter(params), 10.0) == 5.0
    assert params[0].grad.tolist() == [[3.0], [0.0]], "within the bound nothing changes"
    assert clip_grad_norm(params, 1.0) == 5.0
    first, second = gradients(params)
    np.testing.assert_allclose(first, [[0.6], [0.0]], rtol=1e-6)
    np.testing.assert_allclose(second, [0.8], rtol=1e-6)
    assert all(p.grad is a and a.dtype == np.float32 for p, a in zip(params, arrays, strict=True))


def test_a_single_tensor_absent_and_empty_gradients(every_device):
    (p,) = with_grads([6.0, 8.0], device=every_device)
    assert clip_grad_norm(p, 5.0) == 10.0
    np.testing.assert_allclose(gradients([p])[0], [3.0, 4.0], rtol=1e-6)
    assert clip_grad_norm([tg.Parameter([1.0], device=every_device)], 1.0) == 0.0
    assert clip_grad_norm([], 1.0) == 0.0
    assert clip_grad_norm(with_grads(np.zeros((0, 3)), device=every_device), 1.0) == 0.0
    clip_grad_value([tg.Parameter([1.0], device=every_device)], 1.0)
    (zero,) = with_grads([0.0], device=every_device)
    assert clip_grad_norm([zero], 0.0) == 0.0 and zero.grad.tolist() == [0.0]


def test_large_and_small_float32_gradients_have_a_norm(every_device):
    """Squares of 1e30 overflow float32, squares of 1e-30 underflow it."""
    for scale in (1e30, 1e-30):
        params = with_grads([3 * scale, 0.0], [4 * scale], dtype="float32", device=every_device)
        assert clip_grad_norm(params, math.inf) == pytest.approx(5 * scale, rel=1e-6)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_norm_that_is_not_finite(bad, every_device):
    params = with_grads([bad, 1.0], [2.0], device=every_device)
    with pytest.raises(ArgumentError, match="clip_grad_norm: gradients: expected a finite norm"):
        clip_grad_norm(params, 1.0, error_if_nonfinite=True)
    first, second = gradients(params)
    assert first[1] == 1.0 and second[0] == 2.0
    norm = clip_grad_norm(params, 1.0)
    assert not math.isfinite(norm)
    first, second = gradients(params)
    assert np.isnan(first[0]), "inf * 0 and nan * nan"
    if bad == math.inf:
        assert first[1] == 0.0 and second[0] == 0.0


def test_by_value(every_device):
    params = with_grads([3.0, -4.0, 0.5], [[-0.25]], device=every_device)
    array = params[0].grad
    assert clip_grad_value(params, 1) is None
    assert params[0].grad.tolist() == [1.0, -1.0, 0.5] and params[0].grad is array
    assert params[1].grad.tolist() == [[-0.25]]


def test_values_that_are_no_numbers_and_bounds_beyond_the_dtype(every_device):
    (p,) = with_grads([np.nan, np.inf, -np.inf, 2.0], dtype="float32", device=every_device)
    clip_grad_value(p, math.inf)
    np.testing.assert_array_equal(gradients([p])[0], np.float32([np.nan, np.inf, -np.inf, 2.0]))
    clip_grad_value(p, 3.0)
    np.testing.assert_array_equal(gradients([p])[0], np.float32([np.nan, 3.0, -3.0, 2.0]))


@pytest.mark.second
@pytest.mark.parametrize("power", [1.0, 2.0, 2.5, math.inf])
def test_the_kernels_equal_numpy_beyond_one_block(power):
    """Blocks in part, both dtypes, an empty gradient, one in another memory layout; checked."""
    rng = np.random.default_rng(5)
    grads = [rng.standard_normal(s) for s in [(20, 50), (3,), (), (0, 3), (257,)]]
    norms, clipped = [], []
    for device in ("cpu", "emulator"):
        params = with_grads(*grads, device=device)
        params += with_grads(grads[0], dtype="float32", device=device)
        params[0].grad = np.asfortranarray(grads[0])
        with tg.cuda.checking():
            norms.append(clip_grad_norm(params, 2.0, power))
            cut = np.concatenate([p.grad.ravel() for p in params])
            clip_grad_value(params, 0.01)
        clipped.append([cut, *[p.grad.ravel() for p in params]])
    assert norms[1] == pytest.approx(norms[0], rel=1e-6)
    for seen, expected in zip(clipped[1], clipped[0], strict=True):
        np.testing.assert_allclose(seen, expected, rtol=1e-6)


def test_parameters_on_two_devices_have_one_norm():
    params = with_grads([3.0]) + with_grads([4.0], device="emulator")
    assert clip_grad_norm(params, 1.0) == pytest.approx(5.0)
    np.testing.assert_allclose([p.grad.item() for p in params], [0.6, 0.8], rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda p: clip_grad_norm(p, -1.0), "max_norm: expected a number of at least 0, got -1.0"),
        (lambda p: clip_grad_norm(p, "a"), "max_norm"),
        (lambda p: clip_grad_norm(p, math.nan), "max_norm"),
        (lambda p: clip_grad_norm(p, 1.0, 0.0), "norm_type"),
        (lambda p: clip_grad_norm(p, 1.0, -2.0), "norm_type"),
        (lambda p: clip_grad_norm([np.ones(2)], 1.0), "expected Tensors, got a ndarray"),
        (lambda p: clip_grad_norm(tg.nn.Linear(1, 1), 1.0), "parameters"),
        (lambda p: clip_grad_value(p, -1.0), "clip_value"),
        (lambda p: clip_grad_value(3, 1.0), "parameters"),
    ],
)
def test_refusals(call, words):
    params = with_grads([3.0])
    with pytest.raises(ArgumentError, match=words):
        call(params)
    assert params[0].grad.tolist() == [3.0]


# ---- gradients of several batches -----------------------------------------------------------


def test_accumulated_batches_equal_one_large_batch():
    """Four batches of 3, each loss divided by 4, step like one batch of 12."""
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((12, 3)), rng.standard_normal((12, 2))
    start = rng.standard_normal((2, 3))
    whole, parts = tg.Parameter(start), tg.Parameter(start)
    one, several = (tg.optim.Adam([w], lr=0.1) for w in (whole, parts))
    for _ in range(3):
        one.zero_grad()
        tg.mse_loss(tg.linear(x, whole), y).backward()
        one.step()
        several.zero_grad()
        for i in range(0, 12, 3):
            (tg.mse_loss(tg.linear(x[i : i + 3], parts), y[i : i + 3]) / 4).backward()
        several.step()
    np.testing.assert_allclose(parts.value, whole.value, rtol=1e-10)
    assert not np.allclose(whole.value, start)


class TestUsedUp:
    """An iterator gives its parameters once; after that it would clip, write, train none."""

    FUNCTIONS = {
        "clip_grad_norm": lambda given: tg.nn.utils.clip_grad_norm_(given, 1.0),
        "clip_grad_value": lambda given: tg.nn.utils.clip_grad_value_(given, 1.0),
        "parameters_to_vector": tg.nn.utils.parameters_to_vector,
        "vector_to_parameters": lambda given: tg.nn.utils.vector_to_parameters([], given),
        "data_parallel": lambda given: tg.distributed.data_parallel(print, given),
        "SGD": lambda given: tg.optim.SGD(given, lr=0.1),
        "autograd": tg.autograd.backward,
    }

    @pytest.mark.parametrize("function", FUNCTIONS)
    def test_is_refused(self, function):
        model = tg.nn.Linear(2, 1)
        used = model.parameters()
        assert len(list(used)) == 2
        with pytest.raises(ArgumentError, match=f"{function}: .*expected"):
            self.FUNCTIONS[function](used)
        for empty in (filter(None, []), map(str, []), iter({})):
            with pytest.raises(ArgumentError, match=f"{function}: .*expected"):
                self.FUNCTIONS[function](empty)

    @pytest.mark.parametrize("function", list(FUNCTIONS)[:5])
    @pytest.mark.parametrize("given", [5, None, tg.nn.Linear(2, 1)])
    def test_so_is_what_cannot_be_walked(self, function, given):
        if function == "data_parallel" and given is not None and not isinstance(given, int):
            return  # a module is what it takes
        with pytest.raises(ArgumentError, match=f"{function}: .*expected"):
            self.FUNCTIONS[function](given)

    def test_the_way_out_works(self):
        params = with_grads([3.0], [4.0])
        walked = iter(params)
        assert clip_grad_norm(walked, 1.0) == pytest.approx(5.0)
        with pytest.raises(
            ArgumentError, match=r"used up\. Way out: call model.parameters\(\) anew"
        ):
            clip_grad_norm(walked, 1.0)
        assert clip_grad_norm(list(params), 1.0) == pytest.approx(1.0)

    def test_a_list_may_be_empty(self):
        assert clip_grad_norm([], 1.0) == 0.0
        clip_grad_value((), 1.0)
        tg.nn.utils.vector_to_parameters(np.zeros(0, "f4"), [])
        assert tg.distributed.data_parallel(print, []).leaves == []
