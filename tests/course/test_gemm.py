"""Exercise 11: it is the framework's product."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tinygraph.cuda import Kernel, Out
from tinygraph_course.content.exercise import find

GEMM = find("gemm")


# ---- what it costs, and that it is the product -----------------------------------------------


def launched(name, a, b, launch):
    """C, and what the launch gives; `launch` is a way of launching a kernel."""
    (M, K), N = a.shape, b.shape[1]
    per = 16 if name in ("naive", "tiled") else 64
    c = np.full((M, N), np.nan, np.float32)
    grid = -(-N // per), -(-M // per)
    return c, launch(Kernel(GEMM.solution, name), grid, (16, 16), a, b, Out(c), M, N, K)


@given(st.tuples(*[st.integers(1, 70)] * 3), st.integers(0, 2**32 - 1))
@pytest.mark.second
@pytest.mark.parametrize("name", ["naive", "tiled", "register_tile", "double_buffered"])
def test_it_is_the_framework_s_product(name, sizes, seed):
    M, N, K = sizes
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((M, K)).astype(np.float32)
    b = rng.standard_normal((K, N)).astype(np.float32)
    c, _ = launched(name, a, b, Kernel.__call__)
    np.testing.assert_allclose(c, tg.matmul(a, b).value, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "tiles", "reads"),
    [
        ("naive", None, 0),
        ("tiled", 16, 2),
        ("register_tile", 64, 0.5),
        ("double_buffered", 64, 0.5),
    ],
)
def test_bytes_and_reads_of_the_ladder(name, tiles, reads):
    """By hand: without tiles a warp of two rows moves 2 sectors of A and 2 of B for each k; a
    block with tiles fetches its rows of A and its columns of B once."""
    n = 64
    ones = np.ones((n, n), np.float32)
    c, report = launched(name, ones, ones, partial(Kernel.check, profile=True))
    assert (c == n).all()
    warps = n * n // 32
    fetched = 4 * 32 * n * warps if tiles is None else (n // tiles) ** 2 * 2 * tiles * n * 4
    assert report.bytes == fetched + n * n * 4
    loads = [c for c in report.lines if (c.space, c.access) == ("shared", "load")]
    assert 32 * sum(line.requests for line in loads) == reads * n**3
    assert all(line.bank_conflict == 1 for line in report.lines if line.space == "shared")
