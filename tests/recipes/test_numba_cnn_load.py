"""numba_cnn under load: batches of 4,096 images, with memory that is measured and bounded."""

import tracemalloc

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.recipes import numba_cnn

BATCH, TILE = 4096, 256
SHAPE = (1, 28, 28)
MIB = 1 << 20


@pytest.fixture(scope="module")
def batch():
    rng = np.random.default_rng(0)
    images = rng.standard_normal((BATCH, *SHAPE), dtype=np.float32)
    return images, rng.integers(0, 10, BATCH)


def gradients(network, images, labels, tile):
    """Loss and gradients of the mean over all images, in tiles whose gradients accumulate."""
    for p in network.parameters():
        p.grad = None
    total = 0.0
    for start in range(0, len(images), tile):
        part = slice(start, start + tile)
        loss = tg.softmax_cross_entropy(network(images[part]), labels[part], reduction="sum")
        (loss * (1 / len(images))).backward()
        total += loss.item()
    return total / len(images), {name: p.grad.copy() for name, p in network.named_parameters()}


def peak_of(function, *arguments):
    """The result, and how many bytes were held at most, beyond those held before."""
    tracemalloc.start()
    try:
        result = function(*arguments)
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.second
def test_tiles_of_a_batch_give_its_gradients(batch):
    """Few filters, so that the whole batch fits: the same numbers with a fraction of the memory."""
    tg.manual_seed(0)
    network = numba_cnn.model(4, SHAPE)
    (loss, expected), whole = peak_of(gradients, network, *batch, BATCH)
    (same, found), tiled = peak_of(gradients, network, *batch, TILE)
    assert same == pytest.approx(loss, rel=1e-5)
    for name, grad in expected.items():
        np.testing.assert_allclose(found[name], grad, rtol=1e-3, atol=1e-6, err_msg=name)
    convolved = BATCH * 4 * 26 * 26 * 4
    assert whole > convolved  # the measurement sees the arrays
    assert tiled < whole / 8


@pytest.mark.second
def test_a_batch_of_4096_in_bounded_memory(batch):
    """The seed network, 32 filters.  Of the whole batch, the convolution's output alone is 338 MiB,
    and a step holds 1,616 MiB at most; in tiles, 121 MiB were measured."""
    tg.manual_seed(0)
    network = numba_cnn.model(32, SHAPE)
    (loss, found), peak = peak_of(gradients, network, *batch, TILE)
    assert BATCH * 32 * 26 * 26 * 4 == 338 * MIB
    assert peak < 160 * MIB
    assert 2 < loss < 4  # about ln 10: nothing was learnt yet
    assert all(np.isfinite(grad).all() and grad.any() for grad in found.values())


def test_a_forward_of_4096_keeps_nothing(batch):
    """Without a graph an activation is dropped when the next is there: two at a time."""
    network = numba_cnn.model(8, SHAPE)
    with tg.no_grad():
        logits, peak = peak_of(network, batch[0])
        np.testing.assert_allclose(logits.value[:7], network(batch[0][:7]).value, atol=1e-5)
    convolved = BATCH * 8 * 26 * 26 * 4
    assert logits.shape == (BATCH, 10) and convolved < peak < 3 * convolved
