"""Bodies that numba compiles: the same numbers as the ops in numpy, chosen when a plan is made.

The kernels are plain Python.  What they compute is tested on small arrays without numba, and again
compiled where numba is installed.
"""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.ops.fused_convolutions import extreme_images
from tests.plan.test_compile import F, assert_same, images, small_network, trained
from tests.strategies import numbers, seeds
from tinygraph.cuda.cache import folder
from tinygraph.errors import ArgumentError
from tinygraph.ops.conv2d_relu_max_pool2d import Conv2dReluMaxPool2d
from tinygraph.plan.fast import jit, single_channel_stage
from tinygraph.plan.fast.single_channel_stage import SingleChannelStage

needs_numba = pytest.mark.skipif(
    not jit.installed(), reason="numba is missing: pip install 'tinygraph-nn[fast]'"
)
STAGE = (1, 1), (0, 0), (1, 1), 1, 2
PADDINGS = st.sampled_from([(0, 0), (1, 1), (0, 2), "same"])


def as_written(function, arguments, reorder=False):
    """In the place of `jit.compiled`: the kernel itself."""

    def run(*args):
        with np.errstate(all="ignore"):
            function(*args)

    return run


@pytest.fixture(scope="module", params=["python", pytest.param("numba", marks=needs_numba)])
def body(request):
    """float64 in Python, float32 compiled: few instances."""
    if request.param == "numba":
        yield np.float32
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(single_channel_stage, "compiled", as_written)
        single_channel_stage.kernels.cache_clear()
        yield np.float64
    single_channel_stage.kernels.cache_clear()


def results(op, arrays, g):
    """The output and all gradients."""
    nodes = [tg.Tensor(a, requires_grad=True) for a in arrays]
    y = op(*nodes)
    y.backward(g)
    return [y.numpy(), *[node.grad for node in nodes]]


def assert_as_numpy(op, arrays, g, **tolerances):
    plain_op = Conv2dReluMaxPool2d(op.stride, op.padding, op.dilation, op.groups, op.pool)
    for ours, theirs in zip(results(op, arrays, g), results(plain_op, arrays, g), strict=True):
        np.testing.assert_allclose(ours, theirs, **tolerances)


@given(seed=seeds, padding=PADDINGS, bias=st.booleans(), n=st.integers(1, 2), d=st.integers(1, 3))
def test_values_and_gradients_are_those_of_the_reference(body, seed, padding, bias, n, d):
    rng = np.random.default_rng(seed)
    image = rng.integers(4, 8, 2)
    x, w, b = numbers(seed, (n, 1, *image)), numbers(seed + 1, (d, 1, 3, 3)), numbers(seed, (d,))
    arrays = [a.astype(body) for a in ((x, w, b) if bias else (x, w))]
    op = SingleChannelStage((1, 1), padding, (1, 1), 1, 2)
    y = op(*map(tg.Tensor, arrays)).numpy()
    wanted = reference.conv2d_relu_max_pool2d(*[a.astype(float) for a in arrays], padding=padding)
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-4)
    assert_as_numpy(op, arrays, rng.standard_normal(y.shape).astype(body), rtol=1e-4, atol=1e-4)


@given(seed=seeds, scale=st.sampled_from([1.0, -1.0]))
def test_ties_nan_and_infinities_as_numpy(body, seed, scale):
    """One weight of a filter is 1 or -1 and the others 0: its outputs are pixels, so exact."""
    rng = np.random.default_rng(seed)
    x = rng.choice([0.0, -0.0, 1.0, -1.0, 2.0], (2, 1, 6, 7)).astype(body)
    x[0] = np.where(rng.random(x[0].shape) < 0.05, np.nan, x[0])
    w = np.zeros((2, 1, 3, 3), body)
    w[:, 0, *rng.integers(0, 3, 2)] = scale, -scale
    g = rng.integers(-4, 5, (2, 2, 2, 2)).astype(body)
    op = SingleChannelStage(*STAGE)
    assert_as_numpy(op, (x, w, np.zeros(2, body)), g, atol=1e-12)
    y = op(x, w).numpy()
    assert not np.signbit(y[y == 0]).any()


def test_infinite_pixels_as_numpy(body):
    x = extreme_images(5, (1, 1, 8, 8)).astype(body)
    w = numbers(3, (2, 1, 3, 3)).astype(body)
    assert_as_numpy(SingleChannelStage(*STAGE), (x, w), np.ones((1, 2, 3, 3), body), rtol=1e-5)


def test_arrays_in_other_layouts(body):
    """Transposed, with gaps, read-only, not aligned."""
    x, w = numbers(1, (2, 1, 7, 6)).astype(body), numbers(2, (2, 1, 3, 3)).astype(body)
    g = numbers(3, (2, 2, 2, 2)).astype(body)
    raw = np.empty(x.nbytes + 1, np.uint8)
    shifted = raw[1:].view(body).reshape(x.shape)
    shifted[...] = x
    frozen = w.copy()
    frozen.flags.writeable = False
    op = SingleChannelStage(*STAGE)
    wanted = results(op, (x, w), g)
    turned = np.asfortranarray(x), np.asfortranarray(w), np.asfortranarray(g)
    for images_, filters, upstream in [turned, (shifted, frozen, g)]:
        mem = tg.memory.eager_memory((True, True), tg.device.CPU)
        y, saved = op.forward(mem, images_, filters)
        found = [y, *op.backward(mem, upstream, saved, (True, True))]
        for ours, theirs in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_its_gradients_are_those_of_differences():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(single_channel_stage, "compiled", as_written)
        single_channel_stage.kernels.cache_clear()
        inputs = numbers(1, (2, 1, 6, 6)), numbers(2, (2, 1, 3, 3)), numbers(3, (2,))
        tg.testing.gradcheck(lambda *tensors: SingleChannelStage(*STAGE)(*tensors), inputs)
    single_channel_stage.kernels.cache_clear()


# ---- the choice ---------------------------------------------------------------------------------


def test_without_numba_it_is_an_error_where_it_must_be_used(monkeypatch):
    monkeypatch.setattr(jit, "why_not", lambda: "No module named 'numba'")
    step = tg.compile(lambda x: tg.relu(x), fast=True)
    with pytest.raises(ArgumentError, match=r"No module named 'numba'.*tinygraph-nn\[fast\]"):
        step(np.ones(3, F))


def test_without_numba_a_plan_is_made_of_numpy(monkeypatch):
    monkeypatch.setattr(jit, "installed", lambda: False)
    monkeypatch.setattr(jit, "why_not", lambda: pytest.fail("it imports numba"))
    _, _, run = trained(small_network, True, steps=1, batches=(20000,))
    assert "numba" not in run.explain()


def test_another_value_is_refused():
    with pytest.raises(ArgumentError, match="fast: expected True, False or None, got 'yes'"):
        tg.compile(tg.relu, fast="yes")


@needs_numba
@pytest.mark.parametrize("options", [{}, {"tile": 4, "threads": 2}], ids=str)
def test_a_training_is_that_of_the_graph(options):
    first, second = (trained(small_network, True, fast=True, **options) for _ in range(2))
    assert "compiled by numba: %3" in first[2].explain()
    assert_same(first, trained(small_network, False))
    assert first[0] == second[0]
    for a, b in zip(first[1].state_dict().values(), second[1].state_dict().values(), strict=True):
        np.testing.assert_array_equal(a, b)


@needs_numba
@pytest.mark.parametrize(("fast", "n", "numba"), [(None, 20, False), (False, 20, False),
                                                  (None, 20000, True)])  # fmt: skip
def test_by_default_where_the_values_are_many(fast, n, numba):
    model = small_network()
    run = tg.compile(lambda x: model(x), fast=fast)
    run(images(0, n)[0])
    assert ("compiled by numba" in run.explain()) is numba


ANOTHER_PROCESS = """
import numpy as np, tinygraph as tg
from tinygraph.plan.fast import single_channel_stage as stage
stage.kernels(np.dtype(np.float32))
print(sum(sum(k.stats.cache_misses.values()) for k in stage.kernels(np.dtype(np.float32))))
"""


@needs_numba
def test_a_second_process_compiles_nothing():
    single_channel_stage.kernels(np.dtype(F))
    kept = {path: path.stat().st_mtime_ns for path in (folder() / "numba").rglob("*.nb[ic]")}
    done = subprocess.run([sys.executable, "-c", ANOTHER_PROCESS], capture_output=True, text=True,
                          check=True, env=dict(os.environ))  # fmt: skip
    assert done.stdout.split() == ["0"]
    after = {path: path.stat().st_mtime_ns for path in (folder() / "numba").rglob("*.nb[ic]")}
    assert kept and after == kept
