"""The blocks, and the columns of each phase, in which numpy convolves and pools."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.strategies import numbers
from tinygraph.engine.memory import eager_memory
from tinygraph.ops.windows import pooling_phases
from tinygraph.ops.windows.conv2d_relu_max_pool2d import phases_of as phases_of_op
from tinygraph.ops.windows.pooling_phases import (
    CorrelatedInputGradient,
    PhaseColumns,
    PoolingPhases,
)
from tinygraph.ops.windows.windows import windows_2d

pairs = st.tuples(st.integers(1, 4), st.integers(1, 4))


@st.composite
def geometries(draw):
    """Shapes of images and filters, and the keywords of a convolution with pooling."""
    pool, stride, dilation = draw(st.integers(2, 3)), draw(pairs), draw(pairs)
    kernel, padding = draw(pairs), draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))
    image = [
        max((pool * draw(st.integers(1, 3)) - 1) * s + d * (k - 1) + 1 - 2 * p, 1)
        + draw(st.integers(0, 2))
        for s, d, k, p in zip(stride, dilation, kernel, padding, strict=True)
    ]
    n, c, d = draw(st.integers(1, 5)), draw(st.integers(1, 2)), draw(st.integers(1, 3))
    keywords = {"stride": stride, "padding": padding, "dilation": dilation, "pool": pool}
    return (n, c, *image), (d, c, *kernel), keywords


def phases_of(image, filters, stride, padding, dilation, pool, itemsize=8):
    at = windows_2d("test", image[2:], filters[2:], stride, padding, dilation)
    return PoolingPhases(image, at, pool, filters[0], itemsize)


def outputs_of_phase(y, phases, block, a, b):
    """A block of the convolution's outputs (N, D, OH, OW) at one place of the windows."""
    (ph, pw), pool = phases.pooled, phases.pool
    y = y[:, :, a : ph * pool : pool, b : pw * pool : pool]
    return y[block.images, :, block.rows].transpose(1, 0, 2, 3).reshape(y.shape[1], -1)


@given(geometry=geometries(), fewest=st.integers(1, 20))
def test_columns_of_a_phase_are_those_of_its_convolution(geometry, fewest):
    """Filters times columns, against loops; the columns' sums of products, against a scatter."""
    image, filters, keywords = geometry
    x, w = numbers(1, image), numbers(2, filters)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pooling_phases, "BLOCK_BYTES", 0)
        patch.setattr(pooling_phases, "FEWEST_CELLS", fewest)
        phases = phases_of(image, filters, **keywords)
        first = phases.first
    assert first.cells <= max(fewest, phases.pooled[1])
    settings = [keywords[name] for name in ("stride", "padding", "dilation")]
    y = reference.conv2d(x, w, None, *settings)
    mem, total = eager_memory((True,)), np.zeros(image)
    columns = PhaseColumns(mem, phases, x)
    back = PhaseColumns(mem, phases, total)
    rows, inner, seen = w.transpose(0, 2, 3, 1).reshape(len(w), -1), 0.0, 0
    rng = np.random.default_rng(3)
    for block in phases.blocks():
        columns.gather(block)
        back.begin(block)
        for a, b in np.ndindex(phases.pool, phases.pool):
            found = rows @ columns.of(a, b)
            expected = outputs_of_phase(y, phases, block, a, b)
            np.testing.assert_allclose(found, expected, atol=1e-10)
            share = rng.standard_normal(columns.of(a, b).shape)
            inner += np.vdot(share, columns.of(a, b))
            back.put(a, b, np.eye(len(share)), share, np.empty(share.size))
        back.scatter()
        seen += block.cells
    assert seen == image[0] * phases.pooled[0] * phases.pooled[1]
    # scatter is the transpose of gather: <share, gather(x)> = <scatter(share), x>
    np.testing.assert_allclose(np.vdot(total, x), inner, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("bias", [True, False])
@given(geometry=geometries(), fewest=st.integers(1, 20))
def test_many_blocks_give_what_the_three_ops_give(geometry, fewest, bias):
    image, filters, keywords = geometry
    x, w, b = numbers(1, image), numbers(2, filters), numbers(3, filters[:1])
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pooling_phases, "BLOCK_BYTES", 0)
        patch.setattr(pooling_phases, "FEWEST_CELLS", fewest)
        phases_of_op.cache_clear()
        for function in (tg.conv2d_relu_max_pool2d, three_ops):
            leaves = [tg.Tensor(a, requires_grad=True) for a in ((x, w, b) if bias else (x, w))]
            y = function(*leaves, **keywords)
            y.backward(numbers(4, y.shape))
            found.append([y.numpy(), *[leaf.grad for leaf in leaves]])
    phases_of_op.cache_clear()
    for fused, unfused in zip(*found, strict=True):
        np.testing.assert_allclose(fused, unfused, atol=1e-10)


def three_ops(x, w, b=None, *, pool, **keywords):
    return tg.max_pool2d(tg.relu(tg.conv2d(x, w, b, **keywords)), pool)


def test_a_block_of_the_seed_network_stays_in_cache():
    """A few images, or a band of rows of a large one; never fewer than 512 cells."""
    settings = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "pool": 2}
    for shape, filters, expected in [
        ((1000, 1, 28, 28), 256, (4, 13, 13)),  # 1.4 MiB
        ((1000, 1, 28, 28), 32, (26, 13, 13)),
        ((3, 1, 28, 28), 256, (3, 13, 13)),
        ((2, 3, 226, 226), 64, (1, 17, 112)),
        ((64, 512, 10, 10), 512, (32, 4, 4)),  # 512 cells
        ((0, 1, 28, 28), 256, (0, 13, 13)),
    ]:
        phases = phases_of(shape, (filters, shape[1], 3, 3), **settings, itemsize=4)
        first = phases.first
        assert first.shape == expected
        rows = [block.shape[1] for block in phases.blocks()]
        assert sum(rows) == -(-shape[0] // max(expected[0], 1)) * phases.pooled[0]


class Counting:
    """A Memory that keeps what it was asked for."""

    def __init__(self, needs):
        self.needs, self.asked = needs, []

    def empty(self, shape, dtype):
        return self.zeros(shape, dtype)

    def zeros(self, shape, dtype):
        self.asked.append(np.zeros(shape, dtype))
        return self.asked[-1]


def test_only_pooled_values_and_their_bytes_grow_with_the_batch():
    """All else that forward and backward ask for is as large for 60 images as for 30."""
    w = np.zeros((64, 1, 3, 3), np.float32)
    op = tg.conv2d_relu_max_pool2d(np.ones((1, 1, 28, 28), np.float32), w).op
    others = []
    for n in (30, 60):
        mem, x = Counting((False, True, True)), np.zeros((n, 1, 28, 28), np.float32)
        y, saved = op.forward(mem, x, w, w[:, 0, 0, 0])
        op.backward(mem, np.ones_like(y), saved, mem.needs)
        kept = [a for a in mem.asked if a is y or a is saved[0]]
        assert [a.nbytes for a in kept] == [4 * y.size, y.size]
        others.append([a.nbytes for a in mem.asked if not any(a is k for k in kept)])
    assert others[0] == others[1]
    assert max(others[0]) < pooling_phases.BLOCK_BYTES


@given(
    kernel=pairs,
    padding=pairs,
    pool=st.integers(2, 3),
    n=st.integers(1, 5),
    c=st.integers(1, 3),
    d=st.integers(1, 6),
    windows=pairs,
    left_over=st.integers(0, 1),
)
# an image that cannot be as small as is asked: it has two windows where one is
@example(kernel=(4, 4), padding=(3, 3), pool=2, n=1, c=1, d=3, windows=(1, 1), left_over=0)
def test_input_gradient_as_a_convolution(kernel, padding, pool, n, c, d, windows, left_over):
    """Where windows overlap pixel by pixel; several blocks of images."""
    padding = tuple(min(p, k - 1) for p, k in zip(padding, kernel, strict=True))
    image = (
        n,
        c,
        *(
            max(pool * u + k - 1 - 2 * p + left_over, 1)
            for u, k, p in zip(windows, kernel, padding, strict=True)
        ),
    )
    filters = d, c, *kernel
    w = numbers(2, filters)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pooling_phases, "BLOCK_BYTES", 0)
        phases = phases_of(image, filters, (1, 1), padding, (1, 1), pool)
        patch.setattr(pooling_phases, "FEWEST_CELLS", 2 * math.prod(phases.pooled))
        assert CorrelatedInputGradient.fits(phases) == (d <= 2 * c)
    (ph, pw), at = phases.pooled, phases.at
    upstream = np.zeros((n, d, at[0].out, at[1].out))
    upstream[:, :, : ph * pool, : pw * pool] = numbers(3, (n, d, ph * pool, pw * pool))
    part = CorrelatedInputGradient(eager_memory((True,)), phases, np.zeros(image), w)
    for block in phases.blocks():
        part.begin(block)
        for a, b in np.ndindex(pool, pool):
            part.add(outputs_of_phase(upstream, phases, block, a, b), a, b)
        part.end()
    for seed in (4, 5):  # a convolution is linear: <conv(x), g> = <x, gx> for every x
        x = numbers(seed, image)
        expected = np.vdot(reference.conv2d(x, w, None, 1, padding), upstream)
        np.testing.assert_allclose(np.vdot(x, part.sum()), expected, rtol=1e-9, atol=1e-10)
