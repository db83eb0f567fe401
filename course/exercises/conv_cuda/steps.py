"""What is tried of exercise 12: whole numbers, whose sums are exact in any order."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tinygraph.engine.spec import Array
from tinygraph_course.checking.kernel_step import KernelStep, Launch, blocks_of
from tinygraph_course.checking.steps import shown

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

_drawn = np.random.default_rng(12)
Shape = tuple[int, int, int, int]


def whole(rng: np.random.Generator, *shape: int) -> Array:
    """Numbers that do not repeat where the array is small."""
    low = -prod(shape) // 3
    return rng.permutation(np.arange(low, low + prod(shape))).reshape(shape).astype(np.float32)


def windows(size: int, kernel: int, stride: int, padding: int = 0) -> int:
    return (size + 2 * padding - kernel) // stride + 1


def columns(x: Array, kernel: tuple[int, int], stride: int, padding: int) -> Array:
    """cols (N, C, KH, KW, OH, OW), by loops over the places in the window."""
    (N, C, H, W), (KH, KW) = x.shape, kernel
    OH, OW = windows(H, KH, stride, padding), windows(W, KW, stride, padding)
    wide = np.pad(x, ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2))
    cols = np.empty((N, C, KH, KW, OH, OW), x.dtype)
    for i in range(KH):
        for j in range(KW):
            rows = slice(i, i + OH * stride, stride)
            cols[:, :, i, j] = wide[:, :, rows, j : j + OW * stride : stride]
    return cols


def images(cols: Array, shape: Shape, stride: int, padding: int) -> Array:
    """The transpose of `columns`: (N, C, H, W), what lies in the padding cropped."""
    (N, C, H, W), (KH, KW, OH, OW) = shape, cols.shape[2:]
    wide = np.zeros((N, C, H + 2 * padding, W + 2 * padding), cols.dtype)
    for i in range(KH):
        for j in range(KW):
            rows = slice(i, i + OH * stride, stride)
            wide[:, :, rows, j : j + OW * stride : stride] += cols[:, :, i, j]
    return wide[:, :, padding : padding + H, padding : padding + W].copy()


def pooled(x: Array, kernel: int, stride: int) -> tuple[Array, Array]:
    """The largest pixel of each window of x (planes, H, W), and where it lies: the first one."""
    planes, H, W = x.shape
    OH, OW = windows(H, kernel, stride), windows(W, kernel, stride)
    y, argmax = np.empty((planes, OH, OW), x.dtype), np.empty((planes, OH, OW), np.int32)
    for p, u, v in np.ndindex(planes, OH, OW):
        window = x[p, u * stride :, v * stride :][:kernel, :kernel]
        down, right = divmod(int(np.argmax(window)), kernel)
        y[p, u, v] = window[down, right]
        argmax[p, u, v] = (u * stride + down) * W + v * stride + right
    return y, argmax


def unpooled(gy: Array, argmax: Array, shape: tuple[int, int, int]) -> Array:
    """Where each gradient goes: (planes, H, W)."""
    gx = np.zeros(shape, gy.dtype)
    places = gx.reshape(shape[0], -1)
    for p in range(shape[0]):
        np.add.at(places[p], argmax[p].ravel(), gy[p].ravel())
    return gx


def _title(words: str, **arrays: Array) -> str:
    small = [f"  {name} = {shown(a)}" for name, a in arrays.items() if a.size <= 12]
    return "\n".join([words, *small])


def _sizes(shape: tuple[int, ...], kernel: tuple[int, int], stride: int, padding: int) -> str:
    sizes = dict(zip("NCHW", shape, strict=True)) | {"KH": kernel[0], "KW": kernel[1]}
    return ", ".join(f"{k} = {n}" for k, n in {**sizes, "S": stride, "P": padding}.items())


def gathered(
    shape: Shape,
    kernel: tuple[int, int],
    stride: int = 1,
    padding: int = 0,
    block: int = 8,
    seed: Any = _drawn,
) -> Launch:
    """A launch of im2col."""
    rng = np.random.default_rng(seed)
    x = whole(rng, *shape)
    cols = columns(x, kernel, stride, padding)
    blocks = -(-cols.size // block)
    title = f"{_sizes(shape, kernel, stride, padding)}, {blocks_of(blocks, block)}"
    arguments = [x, None, *shape, *kernel, stride, padding, *cols.shape[-2:]]
    return Launch(_title(title, x=x), "im2col", blocks, block, arguments, {1: cols}, drawn="x")


def summed(
    shape: Shape,
    kernel: tuple[int, int],
    stride: int = 1,
    padding: int = 0,
    block: int = 8,
    seed: Any = _drawn,
) -> Launch:
    """A launch of col2im."""
    rng = np.random.default_rng(seed)
    at = columns(whole(rng, *shape), kernel, stride, padding).shape
    cols = whole(rng, *at)
    image = images(cols, shape, stride, padding)
    blocks = -(-image.size // block)
    title = f"{_sizes(shape, kernel, stride, padding)}, {blocks_of(blocks, block)}"
    arguments = [cols, None, *shape, *kernel, stride, padding, *at[-2:]]
    return Launch(
        _title(title, cols=cols), "col2im", blocks, block, arguments, {1: image}, drawn="image"
    )


def _pooling(shape: tuple[int, int, int], kernel: int, stride: int) -> tuple[str, list[int]]:
    planes, H, W = shape
    OH, OW = windows(H, kernel, stride), windows(W, kernel, stride)
    words = f"planes = {planes}, H = {H}, W = {W}, K = {kernel}, S = {stride}"
    return words, [planes, H, W, kernel, stride, OH, OW]


def largest(
    shape: tuple[int, int, int],
    kernel: int = 2,
    stride: int = 2,
    block: int = 8,
    x: Array | None = None,
    seed: Any = _drawn,
) -> Launch:
    """A launch of pool_forward; without `x` on numbers that do not repeat."""
    rng = np.random.default_rng(seed)
    x = whole(rng, *shape) if x is None else x
    y, argmax = pooled(x, kernel, stride)
    words, sizes = _pooling(shape, kernel, stride)
    blocks = -(-y.size // block)
    title = _title(f"{words}, {blocks_of(blocks, block)}", x=x)
    arguments = [x, None, None, *sizes]
    return Launch(title, "pool_forward", blocks, block, arguments, {1: y, 2: argmax}, drawn="x")


def returned(
    shape: tuple[int, int, int],
    kernel: int = 2,
    stride: int = 2,
    block: int = 8,
    seed: Any = _drawn,
) -> Launch:
    """A launch of pool_backward."""
    rng = np.random.default_rng(seed)
    y, argmax = pooled(whole(rng, *shape), kernel, stride)
    gy = 1 + np.abs(whole(rng, *y.shape))
    gx = unpooled(gy, argmax, shape)
    words, sizes = _pooling(shape, kernel, stride)
    blocks = -(-gx.size // block)
    title = _title(f"{words}, {blocks_of(blocks, block)}", gy=gy, argmax=argmax)
    arguments = [gy, argmax, None, *sizes]
    return Launch(title, "pool_backward", blocks, block, arguments, {2: gx}, drawn="gx")


def layer(
    shape: Shape,
    filters: int,
    kernel: tuple[int, int],
    stride: int = 1,
    padding: int = 0,
    block: int = 8,
    seed: Any = _drawn,
) -> Launch:
    """A launch of conv."""
    rng = np.random.default_rng(seed)
    x, (N, C, H, W) = whole(rng, *shape), shape
    w, b = whole(rng, filters, C * kernel[0] * kernel[1]), 10 * whole(rng, filters)
    cols = columns(x, kernel, stride, padding)
    OH, OW = cols.shape[-2:]
    taps = cols.reshape(N, -1, OH * OW)
    y = w @ taps + b[:, None]
    sizes: list[Any] = [C, H, W, filters, *kernel, stride, padding, OH, OW]
    title = f"{_sizes(shape, kernel, stride, padding)}, D = {filters}, {blocks_of(N, block)}"
    title = _title(title, x=x, weight=w, b=b)
    return Launch(
        title, "conv", N, block, [x, w, b, None, None, *sizes], {3: taps, 4: y}, drawn="cols"
    )


def _problems(of: Any, *more: SearchStrategy[Any]) -> SearchStrategy[Launch]:
    """Launches of `of` with sizes of any kind; `more` come between the shape and the kernel."""
    from hypothesis import strategies as st

    shapes = st.tuples(*[st.integers(1, 3)] * 2, *[st.integers(3, 9)] * 2)
    kernels = st.tuples(*[st.integers(1, 3)] * 2)
    blocks = st.sampled_from([16, 32, 96])
    numbers = kernels, st.integers(1, 3), st.integers(0, 1), blocks
    return st.builds(of, shapes, *more, *numbers, seed=st.integers(0, 999))


def _poolings(of: Any) -> SearchStrategy[Launch]:
    from hypothesis import strategies as st

    shapes = st.tuples(st.integers(1, 3), st.integers(3, 9), st.integers(3, 9))
    blocks, seeds = st.sampled_from([16, 32, 96]), st.integers(0, 999)
    return st.builds(of, shapes, st.integers(1, 3), st.integers(1, 3), blocks, seed=seeds)


def _layers() -> SearchStrategy[Launch]:
    from hypothesis import strategies as st

    return _problems(layer, st.integers(1, 4))


NEGATIVE = np.array([[[-3, -1], [-2, -5]]], np.float32)
TIES = np.array([[[4, 9, 9], [9, 4, 9], [0, 9, 9]]], np.float32)
INFINITE = np.full((1, 3, 4), -np.inf, np.float32)

STEPS = [
    KernelStep(
        1,
        [
            gathered((1, 1, 1, 4), (1, 2)),
            gathered((1, 1, 3, 3), (2, 2)),
            gathered((1, 1, 2, 3), (1, 3), 1, 1),
            gathered((1, 1, 3, 2), (3, 1), 1, 1),
            gathered((1, 2, 5, 6), (2, 3), 2, 0),
            gathered((2, 3, 4, 5), (3, 2), 2, 1),
        ],
        drawn=lambda: _problems(gathered),
    ),
    KernelStep(
        2,
        [
            summed((1, 1, 1, 4), (1, 2)),
            summed((1, 1, 3, 3), (2, 2)),
            summed((1, 1, 1, 5), (1, 2), 2),
            summed((1, 1, 2, 3), (1, 3), 1, 1),
            summed((2, 2, 4, 5), (2, 3), 1, 1),
            summed((2, 3, 6, 7), (3, 2), 2, 1),
        ],
        drawn=lambda: _problems(summed),
    ),
    KernelStep(
        3,
        [
            largest((1, 2, 4)),
            largest((1, 2, 2), x=NEGATIVE),
            largest((1, 3, 3), 2, 1, x=TIES),
            largest((1, 3, 4), 2, 1, x=INFINITE),
            largest((2, 4, 6)),
            largest((3, 7, 6), 3, 2),
        ],
        drawn=lambda: _poolings(largest),
    ),
    KernelStep(
        4,
        [
            returned((1, 2, 4)),
            returned((1, 3, 3), 2, 1),
            returned((2, 4, 5)),
            returned((3, 7, 6), 3, 2),
            returned((2, 5, 5), 1, 2),
        ],
        drawn=lambda: _poolings(returned),
    ),
    KernelStep(
        5,
        [
            layer((1, 1, 1, 3), 1, (1, 2), block=4),
            layer((1, 1, 2, 3), 2, (2, 2), block=4),
            layer((2, 2, 3, 4), 3, (2, 3)),
            layer((2, 2, 4, 5), 4, (3, 2), 2, 1, block=40),  # more threads than a warp has
        ],
        drawn=_layers,
    ),
]
