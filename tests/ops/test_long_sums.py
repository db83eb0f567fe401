"""Sums of a million terms in float32, against float64: every op that reduces or scatters.

The terms are few numbers that repeat, which is the worst case: all roundings of a long sum go the
same way.  Outputs that are products keep the error of BLAS, or of their kernel, and are left out;
so are those that cancel.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import tinygraph as tg
import tinygraph.nn.functional as F

N = 1 << 20
M = 1 << 10  # N = M * M
ROUNDING = 2.0**-24  # of one operation in float32, relative
UNITS = 4  # rounding errors for each doubling of the terms


@dataclass(frozen=True)
class Case:
    function: object
    shapes: list
    varied: tuple = ()  # inputs that need two numbers: of one, differences from the mean are 0
    left_out: tuple = ()  # outputs: 0 is y, 1 the gradient of the first input
    left_out_of_kernels: tuple = ()  # of these alone


def zeros(*shape):
    return np.zeros(shape, np.int64)


CASES = {
    "sum first": Case(lambda x: tg.sum(x, 0), [(N, 2)]),
    "sum last": Case(lambda x: tg.sum(x, 1), [(2, N)]),
    "sum all": Case(tg.sum, [(N // 4, 4)]),
    "sum around": Case(lambda x: tg.sum(x, (0, 2)), [(M, 3, M)]),
    "sum two": Case(lambda x: tg.sum(x, (0, 1)), [(M, M, 3)]),
    "sum middle": Case(lambda x: tg.sum(x, 1), [(2, N // 4, 3)]),
    "sum transposed": Case(lambda x: tg.sum(tg.transpose(x, 0, 1), 1), [(N, 2)]),
    "sum sliced": Case(lambda x: tg.sum(x[:, :2]), [(N // 2, 3)]),
    "sum flipped": Case(lambda x: tg.sum(tg.flip(x, (0, 1)), 0), [(N, 2)]),
    "mean": Case(lambda x: tg.mean(x, 0), [(N, 2)]),
    "var": Case(lambda x: tg.var(x, 0), [(N, 2)], varied=(0,)),
    "std": Case(lambda x: tg.std(x, 0), [(N, 2)], varied=(0,)),
    "norm": Case(lambda x: tg.norm(x, 2, 0), [(N, 2)]),
    "norm of power 3": Case(lambda x: tg.norm(x, 3, 0), [(N, 2)]),
    "logsumexp": Case(lambda x: tg.logsumexp(x, 0), [(N, 2)], varied=(0,)),
    "softmax": Case(lambda x: tg.softmax(x, 0), [(N, 2)], varied=(0,)),
    "softmax of lines": Case(lambda x: tg.softmax(x, 1), [(2000, 500)], varied=(0,)),
    "softmax of short lines": Case(lambda x: tg.softmax(x, 1), [(20000, 40)], varied=(0,)),
    "log_softmax": Case(lambda x: tg.log_softmax(x, 0), [(N, 2)], varied=(0,)),
    "max of ties": Case(lambda x: tg.amax(x, 0), [(N, 2)]),
    "einsum": Case(lambda x: tg.einsum("ij->j", x), [(N, 2)]),
    "expand": Case(lambda x: tg.expand(x, (N, 2)), [(1, 2)]),
    "tile": Case(lambda x: tg.tile(x, (N // 2, 1)), [(2, 2)]),
    "repeat_interleave": Case(lambda x: tg.repeat_interleave(x, N // 2, 0), [(2, 2)]),
    "add": Case(tg.add, [(N, 2), (2,)]),
    "multiply": Case(tg.multiply, [(N, 2), (1, 2)]),
    "multiply around": Case(tg.multiply, [(M, 2, M), (2, 1)]),
    "divide": Case(tg.divide, [(N, 2), (2,)]),
    "pow": Case(lambda x, y: x**y, [(N, 2), (2,)]),
    "maximum": Case(tg.maximum, [(N, 2), (2,)]),
    "where": Case(
        lambda x, y: tg.where(np.arange(2 * N).reshape(N, 2) % 4 < 2, x, y), [(N, 2), (2,)]
    ),
    "linear": Case(F.linear, [(N, 2), (3, 2), (3,)], left_out=(2,)),
    "matmul of many": Case(tg.matmul, [(N // 4, 1, 2), (2, 3)], left_out=(2,)),
    "conv2d": Case(F.conv2d, [(64, 1, 130, 130), (2, 1, 3, 3), (2,)], left_out=(2,)),
    "conv1d": Case(F.conv1d, [(1, 1, N), (2, 1, 3), (2,)], left_out=(2,)),
    "conv2d of small images": Case(
        F.conv2d, [(N // 4, 1, 3, 3), (2, 1, 2, 2), (2,)], left_out=(2,)
    ),
    "conv_transpose2d": Case(
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2),
        [(16, 2, 128, 128), (2, 2, 3, 3), (2,)],
        left_out=(2,),
    ),
    "stage of one channel": Case(
        lambda x, w, b: tg.conv2d_relu_max_pool2d(x, w, b, pool=2),
        [(64, 1, 258, 258), (2, 1, 3, 3), (2,)],
        left_out=(2,),
    ),
    "stage": Case(
        lambda x, w, b: tg.conv2d_relu_max_pool2d(x, w, b, pool=2),
        [(64, 4, 130, 130), (4, 4, 3, 3), (4,)],
        left_out=(2,),
    ),
    "layer_norm of many": Case(
        lambda x, w, b: F.layer_norm(x, (4,), w, b),
        [(N, 4), (4,), (4,)],
        varied=(0,),
        left_out=(1,),
    ),
    "layer_norm of long": Case(
        lambda x, w, b: F.layer_norm(x, (N,), w, b), [(2, N), (N,), (N,)], varied=(0,)
    ),
    "rms_norm": Case(lambda x, w: F.rms_norm(x, (4,), w, eps=1e-5), [(N, 4), (4,)], varied=(0,)),
    "group_norm": Case(
        lambda x, w, b: F.group_norm(x, 2, w, b), [(64, 4, 128, 64), (4,), (4,)], varied=(0,)
    ),
    "instance_norm": Case(F.instance_norm, [(2, 2, M, M)], varied=(0,)),
    "batch_norm of images": Case(
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        [(64, 2, 128, 128), (2,), (2,)],
        varied=(0,),
    ),
    "batch_norm of rows": Case(
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        [(N, 2), (2,), (2,)],
        varied=(0,),
    ),
    "prelu": Case(lambda x, w: tg.prelu(-x, w), [(N, 2), (2,)]),
    "prelu of one slope": Case(lambda x, w: tg.prelu(-x, w), [(M, 2, M), (1,)]),
    "global_avg_pool2d": Case(tg.global_avg_pool2d, [(2, 2, M, M)]),
    "avg_pool2d": Case(lambda x: F.avg_pool2d(x, M, 1), [(1, 1, M + 1, M + 1)]),
    "avg_pool1d": Case(lambda x: F.avg_pool1d(x, N, 1), [(1, 1, N + 1)]),
    "adaptive_avg_pool2d": Case(lambda x: F.adaptive_avg_pool2d(x, 2), [(1, 1, 2 * M, 2 * M)]),
    "embedding": Case(lambda w: tg.embedding(zeros(N), w), [(3, 2)]),
    "getitem": Case(lambda w: w[zeros(N)], [(3, 2)]),
    "getitem of columns": Case(lambda w: w[:, np.arange(N) % 3], [(2, 3)]),
    "getitem of a large array": Case(lambda w: w[np.arange(N) % 7], [(N + 7, 1)]),
    "gather": Case(lambda w: tg.gather(w, 0, zeros(N, 2)), [(3, 2)]),
    "nearest": Case(lambda x: F.interpolate(x, size=(M, M), mode="nearest"), [(1, 1, 1, 1)]),
    "bilinear": Case(lambda x: F.interpolate(x, size=(M, M), mode="bilinear"), [(1, 1, 2, 2)]),
    "pad by an edge": Case(lambda x: F.pad(x, (N, 0), mode="replicate"), [(1, 1, 3)]),
    "cross_entropy": Case(lambda x: F.cross_entropy(x, zeros(N // 2)), [(N // 2, 3)], varied=(0,)),
    "cross_entropy of many classes": Case(
        lambda x: F.cross_entropy(x, zeros(4)), [(4, N)], varied=(0,)
    ),
    "cross_entropy of probabilities": Case(
        lambda x, t: F.cross_entropy(x, t), [(4, N), (4, N)], varied=(0,)
    ),
    "cross_entropy of smoothed labels": Case(
        lambda x: F.cross_entropy(x, zeros(4), label_smoothing=0.1), [(4, N)], varied=(0,)
    ),
    "nll_loss": Case(lambda x: F.nll_loss(x, zeros(N // 2)), [(N // 2, 3)]),
    "mse_loss": Case(F.mse_loss, [(N // 2, 2), (N // 2, 2)]),
    "l1_loss": Case(F.l1_loss, [(N // 2, 2), (N // 2, 2)]),
    "huber_loss": Case(F.huber_loss, [(N // 2, 2), (N // 2, 2)]),
    "kl_div": Case(F.kl_div, [(N // 2, 2), (N // 2, 2)]),
    "binary_cross_entropy": Case(F.binary_cross_entropy, [(N // 2, 2), (N // 2, 2)]),
    "binary_cross_entropy_with_logits": Case(
        F.binary_cross_entropy_with_logits, [(N // 2, 2), (N // 2, 2)]
    ),
    "half_squared_error": Case(tg.half_squared_error, [(N // 2, 2), (N // 2, 2)]),
    "cosine_similarity": Case(
        lambda x, y: F.cosine_similarity(x, y, 0), [(N, 2), (N, 2)], varied=(0,)
    ),
    "attention of a shared mask": Case(
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m),
        [(N // 16, 1, 2, 4), (N // 16, 1, 2, 4), (N // 16, 1, 2, 4), (2, 2)],
        varied=(0, 1, 2),
        left_out_of_kernels=(4,),  # a block adds up the batch in registers, one after the other
    ),
    "rnn_layer": Case(tg.rnn_layer, [(4, N // 8, 2), (1, N // 8, 2), (2, 2), (2,)], left_out=(3,)),
    "gru_layer": Case(tg.gru_layer, [(4, N // 8, 6), (1, N // 8, 2), (6, 2), (6,)], left_out=(3,)),
    "lstm_layer": Case(
        tg.lstm_layer, [(4, N // 8, 8), (2, N // 8, 2), (8, 2), (8,)], left_out=(3,)
    ),
}


def arrays_of(case, level):
    """One number, or two that take turns every three places."""
    found = []
    for i, shape in enumerate(case.shapes):
        size = int(np.prod(shape))
        array = np.full(size, (level, 0.7, 0.3, 0.45)[i], np.float32)
        if i in case.varied:
            array += np.float32(0.8) * (np.arange(size) // 3 % 2)
        found.append(array.reshape(shape).astype(np.float32))
    return found


def upstream(shape):
    """Four numbers, which are larger where an input that is varied is, so that nothing cancels."""
    numbers = np.array([0.1, 0.5, 0.3, 0.2], np.float32)
    return numbers[np.arange(int(np.prod(shape))) // 3 % 4].reshape(shape)


def results(case, arrays, dtype, device="cpu", compiled=False):
    """The output, and the gradients of the inputs."""
    inputs = [tg.tensor(a.astype(dtype), device=device, requires_grad=True) for a in arrays]

    def scalar(*given):
        y = case.function(*given)
        return y.detach(), (y * upstream(y.shape).astype(dtype)).sum()

    y, loss = (tg.compile(scalar) if compiled else scalar)(*inputs)
    loss.backward()
    return [y.numpy(), *[x.device.to_numpy(x.grad) for x in inputs]]


def assert_rounding(got, want, left_out):
    for number, (found, exact) in enumerate(zip(got, want, strict=True)):
        if number in left_out:
            continue
        assert found.dtype == np.float32
        error = np.abs(found - exact).max() / (np.abs(exact).max() or 1) / ROUNDING
        assert error <= UNITS * np.log2(N), f"output {number}: {error:.0f} rounding errors"


LEVELS = st.integers(10, 95).map(lambda hundredths: hundredths / 100)


EXAMPLE = settings(max_examples=1, phases=[Phase.generate])  # to make them smaller takes minutes


def check(name, level, device="cpu", compiled=False):
    case = CASES[name]
    arrays = arrays_of(case, level)
    want = results(case, arrays, np.float64)
    left_out = case.left_out if device == "cpu" else case.left_out + case.left_out_of_kernels
    assert_rounding(results(case, arrays, np.float32, device, compiled), want, left_out)


@pytest.mark.parametrize("name", CASES)
@EXAMPLE
@given(level=LEVELS)
def test_on_the_cpu(name, level):
    check(name, level)


@pytest.mark.second
@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", CASES)
@EXAMPLE
@given(level=LEVELS)
def test_in_a_plan(name, level):
    check(name, level, compiled=True)


@pytest.mark.second
@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", CASES)
@EXAMPLE
@given(level=LEVELS)
def test_on_the_emulator(name, level):
    check(name, level, "emulator")
