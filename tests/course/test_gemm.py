"""Exercise 11: right and wrong kernels in other styles, and that it is the framework's product."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tests.course.bodies import changed, with_step
from tests.course.test_exercises import of
from tinygraph.cuda import Kernel, Out
from tinygraph_course.content.exercise import find

GEMM = find("gemm")

# ---- bodies in the manner of learners: other names, loops and order, pointers that walk ----------
NAIVE = """
    int c = threadIdx.x + TILE * blockIdx.x, r = threadIdx.y + TILE * blockIdx.y;
    if (r < M && c < N) {
        const float *p = A + r * K, *q = B + c;
        float s = 0;
        for (int left = K; left; --left, ++p, q += N)
            s = s + *p * *q;
        C[N * r + c] = s;
    }
"""
LOAD = """
    float value = 0;
    if (row0 + threadIdx.y < rows) {
        if (column0 + threadIdx.x < columns)
            value = matrix[(row0 + threadIdx.y) * columns + (column0 + threadIdx.x)];
    }
    tile[threadIdx.y][threadIdx.x] = value;
"""
TILED = """
    int c = threadIdx.x + TILE * blockIdx.x, r = threadIdx.y + TILE * blockIdx.y;
    float s = 0;
    int tiles = (K + TILE - 1) / TILE;
    for (int t = 0; t < tiles; t++) {
        load_tile(B, b, K, N, t * TILE, blockIdx.x * TILE);
        load_tile(A, a, M, K, blockIdx.y * TILE, t * TILE);
        __syncthreads();
        for (int q = TILE - 1; q >= 0; q--) {
            float left = a[threadIdx.y][q];
            s += left * b[q][threadIdx.x];
        }
        __syncthreads();
    }
    if (r < M) {
        if (c < N) C[N * r + c] = s;
    }
"""
REGISTERS = """
    float s[4][4], u[4], v[4];
    int r = TILE * blockIdx.y * 4, c = TILE * blockIdx.x * 4;
    for (int n = 0; n < 16; ++n) s[n / 4][n % 4] = 0;
    int tiles = (K + TILE - 1) / TILE;
    for (int t = 0; t < tiles; t++) {
        load_tiles(A, B, a, b, M, N, K, r, c, TILE * t);
        __syncthreads();
        for (int q = 0; q != TILE; ++q) {
            for (int n = 0; n < 4; ++n) u[n] = a[n][threadIdx.y][q];
            for (int n = 0; n < 4; ++n) v[n] = b[n][q][threadIdx.x];
            for (int j = 0; j < 4; ++j)
                for (int i = 0; i < 4; ++i)
                    s[i][j] += u[i] * v[j];
        }
        __syncthreads();
    }
    write_sums(s, C, M, N, r, c);
"""
BUFFERS = """
    float s[4][4] = {{0}}, u[4] = {0}, v[4] = {0};
    int r = TILE * blockIdx.y * 4, c = TILE * blockIdx.x * 4;
    int tiles = (K + TILE - 1) / TILE;
    load_tiles(A, B, a[0], b[0], M, N, K, r, c, 0);
    __syncthreads();
    for (int t = 0; t < tiles; t++) {
        if (t + 1 < tiles)
            load_tiles(A, B, a[(t + 1) % 2], b[(t + 1) % 2], M, N, K, r, c, TILE * (t + 1));
        for (int q = 0; q != TILE; ++q) {
            for (int n = 0; n < 4; ++n) u[n] = a[t % 2][n][threadIdx.y][q];
            for (int n = 0; n < 4; ++n) v[n] = b[t % 2][n][q][threadIdx.x];
            for (int n = 0; n < 16; ++n) s[n / 4][n % 4] += u[n / 4] * v[n % 4];
        }
        __syncthreads();
    }
    write_sums(s, C, M, N, r, c);
"""
BODIES = {1: NAIVE, 2: LOAD, 3: TILED, 4: REGISTERS, 5: BUFFERS}
BARRIER_FIRST = TILED.replace(
    "        load_tile(B", "        __syncthreads();\n        load_tile(B"
).replace("        }\n        __syncthreads();\n", "        }\n")
RIGHT = {
    **{f"step {step}": (step, body) for step, body in BODIES.items()},
    "the second barrier first": (3, BARRIER_FIRST),
}
SYNC = "        __syncthreads();\n"
WRONG = {  # the step, what is replaced in the body above by what, and the mistake that it is
    "a column for each x": (
        1,
        [
            ("c = threadIdx.x + TILE * blockIdx.x", "c = threadIdx.y + TILE * blockIdx.x"),
            ("r = threadIdx.y + TILE * blockIdx.y", "r = threadIdx.x + TILE * blockIdx.y"),
        ],
        "x-and-y-exchanged",
    ),
    "pointers that go anywhere": (1, [("if (r < M && c < N) ", "")], "no-guard"),
    "a pointer that begins N apart": (
        1,
        [("p = A + r * K", "p = A + N * r")],
        "row-of-a-is-n-long",
    ),
    "a pointer along the row": (
        1,
        [("q = B + c", "q = B + c * K"), ("q += N", "q++")],
        "b-by-rows",
    ),
    "a sum without a value": (1, [("float s = 0;", "float s;")], "sum-not-zeroed"),
    "a tile that is left": (
        2,
        [
            ("    float value = 0;\n", ""),
            ("value = ", "tile[threadIdx.y][threadIdx.x] = "),
            ("    tile[threadIdx.y][threadIdx.x] = value;\n", ""),
        ],
        "edge-not-zeroed",
    ),
    "guarded below alone": (
        2,
        [("if (column0 + threadIdx.x < columns)", "")],
        "rows-of-the-tile-alone",
    ),
    "a tile by columns": (
        2,
        [
            ("row0 + threadIdx.y < rows", "row0 + threadIdx.x < rows"),
            ("column0 + threadIdx.x < columns", "column0 + threadIdx.y < columns"),
            ("(row0 + threadIdx.y) *", "(row0 + threadIdx.x) *"),
            ("(column0 + threadIdx.x)]", "(column0 + threadIdx.y)]"),
            ("tile[threadIdx.y][threadIdx.x]", "tile[threadIdx.x][threadIdx.y]"),
        ],
        "tile-x-and-y-exchanged",
    ),
    "no second barrier": (
        3,
        [(f"        }}\n{SYNC}", "        }\n")],
        "no-barrier-after-the-product",
    ),
    "no first barrier": (
        3,
        [(f"t * TILE);\n{SYNC}", "t * TILE);\n")],
        "no-barrier-before-the-product",
    ),
    "tiles rounded down": (3, [("(K + TILE - 1) / TILE", "K / TILE")], "tail-lost"),
    "some leave at once": (
        3,
        [
            (
                "    float s = 0;\n",
                "    float s = 0;\n    if (r >= M) return;\n    if (c >= N) return;\n",
            )
        ],
        "return-before-a-barrier",
    ),
    "a tile of B of his own, turned": (
        3,
        [
            (
                "load_tile(B, b, K, N, t * TILE, blockIdx.x * TILE);",
                "int d = t * TILE + threadIdx.y;\n        float v = 0;\n"
                "        if (d < K && c < N) v = B[N * d + c];\n"
                "        b[threadIdx.x][threadIdx.y] = v;",
            ),
            ("b[q][threadIdx.x]", "b[threadIdx.x][q]"),
        ],
        "b-by-columns",
    ),
    "the sum begins in the loop": (
        3,
        [
            ("    float s = 0;\n", "    float s;\n"),
            (f"t * TILE);\n{SYNC}", f"t * TILE);\n{SYNC}        s = 0;\n"),
        ],
        "sum-of-a-tile-begins-anew",
    ),
    "panels without a second barrier": (
        4,
        [(f"        }}\n{SYNC}", "        }\n")],
        "panels-overwritten",
    ),
    "no variables": (
        4,
        [("s[i][j] += u[i] * v[j];", "s[i][j] += a[i][threadIdx.y][q] * b[j][q][threadIdx.x];")],
        "sixteen-reads",
    ),
    "sums without a value": (
        4,
        [("    for (int n = 0; n < 16; ++n) s[n / 4][n % 4] = 0;\n", "")],
        "sixteen-sums-not-zeroed",
    ),
    "one buffer of two": (
        5,
        [("a[(t + 1) % 2], b[(t + 1) % 2]", "a[t % 2], b[t % 2]")],
        "both-buffers-the-same",
    ),
    "no barrier in the loop": (
        5,
        [(f"        }}\n{SYNC}", "        }\n")],
        "barrier-before-the-first-tile-alone",
    ),
    "a barrier after loading": (
        5,
        [
            ("c, 0);\n    __syncthreads();\n", "c, 0);\n"),
            (f"        }}\n{SYNC}", "        }\n"),
            ("TILE * (t + 1));\n", f"TILE * (t + 1));\n{SYNC}"),
        ],
        "barrier-behind-the-load",
    ),
    "always the first buffer": (
        5,
        [
            ("a[(t + 1) % 2], b[(t + 1) % 2]", "a[1], b[1]"),
            ("a[t % 2][n]", "a[0][n]"),
            ("b[t % 2][n]", "b[0][n]"),
        ],
        "buffers-not-exchanged",
    ),
}
OUTSIDE = {  # wrong in a way that the catalogue does not have
    "the first k is left out": (
        1,
        [
            ("left = K;", "left = K - 1;"),
            ("p = A + r * K, *q = B + c", "p = A + r * K + 1, *q = B + c + N"),
        ],
    ),
    "C from its end": (1, [("C[N * r + c]", "C[M * N - 1 - N * r - c]")]),
    "a sign": (2, [("value = matrix", "value = -matrix")]),
    "the last k of a tile is left out": (3, [("q = TILE - 1", "q = TILE - 2")]),
    "every second tile": (3, [("t++", "t += 2")]),
    "the squares": (4, [("u[i] * v[j]", "u[i] * u[j]")]),
    "three rows of four": (4, [("i < 4; ++i)\n", "i < 3; ++i)\n")]),
    "a tile is skipped": (5, [("TILE * (t + 1)", "TILE * (t + 2)")]),
}


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", RIGHT)
def test_right_kernels_in_another_style_pass(style, tmp_path):
    outcome = of(GEMM, with_step(GEMM, *RIGHT[style]), tmp_path)
    assert outcome.ok, outcome.failure


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", WRONG)
def test_wrong_kernels_in_another_style_are_named(style, tmp_path):
    step, edits, name = WRONG[style]
    outcome = of(GEMM, changed(GEMM, step, BODIES[step], edits), tmp_path)
    assert outcome.step == step
    assert outcome.failure.mistake is not None, outcome.failure
    assert outcome.failure.mistake.name == name


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", OUTSIDE)
def test_what_the_catalogue_does_not_have_is_never_named_surely(style, tmp_path):
    step, edits = OUTSIDE[style]
    outcome = of(GEMM, changed(GEMM, step, BODIES[step], edits), tmp_path)
    assert outcome.step == step
    assert outcome.failure.mistake is None or not outcome.failure.sure


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
