"""Threads that share the work of an op: which parts each takes, and that no bit depends on it."""

from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base import threads
from tinygraph.base.errors import ArgumentError
from tinygraph.base.threads import share_out
from tinygraph.engine.memory import Memory
from tinygraph.ops.common import blocks as sharing
from tinygraph.ops.common.blocks import Blocks, product
from tinygraph.ops.elementwise import unary
from tinygraph.ops.elementwise.elementwise import Exp
from tinygraph.ops.elementwise.relu import Relu
from tinygraph.ops.windows.max_pool2d import MaxPool2d

RNG = np.random.default_rng(1)
IMAGES = RNG.integers(-3, 4, (7, 2, 8, 9)).astype(np.float32)  # with ties, for the first maximum
IMAGES[2, 0, 3, 3] = IMAGES[5, 1, 0, 0] = np.nan


class OnThreads(Memory):
    """Eager memory for a body whose work so many threads may share."""

    __slots__ = ("workers",)

    def __init__(self, workers, needs=(True,)):
        super().__init__(tg.device("cpu"), needs)
        self.workers = workers


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("shares", [0, 1, 3, 6, 7])
def test_each_thread_takes_neighbouring_shares(shares, count):
    done = [[] for _ in range(count)]
    share_out(shares, count, lambda thread, share: done[thread].append(share))
    assert [share for taken in done for share in taken] == list(range(shares))
    assert max(map(len, done)) - min(map(len, done)) <= 1


@pytest.mark.parametrize("parts", [0, 1, 2, 5, 8, 100])
@pytest.mark.parametrize("each", [1, sharing.BLOCK_BYTES // 2, sharing.WORTH_BLOCKS])
def test_blocks_are_all_parts_in_order(parts, each):
    blocks, found = Blocks(SimpleNamespace(workers=1), parts, each), []
    blocks.run(lambda thread, block: found.append(block))
    assert [i for block in found for i in range(block.start, block.stop)] == list(range(parts))
    assert max(block.stop - block.start for block in found) == blocks.largest
    assert len(found) == 1 or parts * each >= sharing.WORTH_BLOCKS


OPS = {
    "relu": (Relu(), IMAGES),
    "exp": (Exp(), IMAGES),
    "max_pool2d": (MaxPool2d((2, 2), (2, 2), (0, 0), False), IMAGES),
    "max_pool2d that overlaps, padded": (MaxPool2d((3, 3), (2, 2), (1, 1), False), IMAGES),
}


@pytest.mark.parametrize("name", OPS)
def test_no_bit_depends_on_blocks_and_threads(name, monkeypatch):
    op, x = OPS[name]

    def both(workers):
        mem = OnThreads(workers)
        y, saved = op.forward(mem, x)
        gy = np.random.default_rng(2).standard_normal(y.shape).astype(np.float32)
        return [y, *op.backward(mem, gy, saved, (True,))]

    whole = both(1)
    monkeypatch.setattr(sharing, "WORTH_BLOCKS", 0)
    monkeypatch.setattr(unary, "WORTH_BLOCKS", 0)
    monkeypatch.setattr(sharing, "BLOCK_BYTES", 2 * x[0].nbytes)
    for workers in (1, 2, 3):
        for got, expected in zip(both(workers), whole, strict=True):
            np.testing.assert_array_equal(got, expected)


def test_arrays_with_gaps_are_not_cut(monkeypatch):
    monkeypatch.setattr(unary, "WORTH_BLOCKS", 0)
    x = IMAGES[:, :, ::2]
    y, _ = Relu().forward(OnThreads(2), x)
    np.testing.assert_array_equal(y, np.where(x <= 0, np.float32(0), x))


@pytest.mark.parametrize("rows, inside", [(8, 0), (128, 1), (4096, 0)])
def test_which_products_have_one_thread_of_blas(rows, inside, monkeypatch):
    entered = []

    @contextmanager
    def counted():
        entered.append(1)
        yield

    monkeypatch.setattr(sharing, "one_blas_thread", counted)
    a, b = (RNG.standard_normal(shape).astype(np.float32) for shape in ((rows, 64), (64, 64)))
    out = np.empty((rows, 64), np.float32)
    assert product(a, b, out) is out and len(entered) == inside
    np.testing.assert_array_equal(out, a @ b)
    vector = RNG.standard_normal(64).astype(np.float32)
    np.testing.assert_array_equal(product(a, vector, np.empty(rows, np.float32)), a @ vector)


def test_an_error_in_another_thread_is_raised_here():
    def work(thread, share):
        if share == 1:
            raise ArgumentError("work", "share", "0", share)

    with pytest.raises(ArgumentError, match="expected 0"):
        threads.share_out(2, 2, work)


def test_blas_has_its_threads_again():
    """Also where two threads come and go in turns."""
    threadpoolctl = pytest.importorskip("threadpoolctl")
    threads._blas.cache_clear()  # another test may have loaded a library of its own since

    def of_blas():
        found = threadpoolctl.threadpool_info()
        return [pool["num_threads"] for pool in found if pool["user_api"] == "blas"]

    before = of_blas()
    first, second = threads.one_blas_thread(), threads.one_blas_thread()
    for step in (first.__enter__, second.__enter__, lambda: first.__exit__(None, None, None)):
        step()
        assert of_blas() == [1] * len(before)
    second.__exit__(None, None, None)
    assert of_blas() == before
