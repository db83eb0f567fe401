"""Launches of the kernels that slide a window over an image."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests import reference
from tests.cuda.launch import BLOCK, F4, I4, Launch, Maker, null
from tinygraph.cuda import Out, blocks

# planes, image, windows, kernel size, stride, padding before the first row and column, blocks
POOLS = [
    (1, (1, 1), (1, 1), (1, 1), (1, 1), (0, 0), 1),
    (2, (5, 6), (4, 4), (3, 2), (2, 2), (2, 1), 1),  # windows hang over all edges
    (9, (8, 6), (7, 5), (2, 2), (1, 1), (0, 0), 1),  # windows overlap; two turns of the loop
    (3, (8, 11), (2, 3), (2, 3), (3, 3), (0, 0), 2),  # gaps, and pixels left out at the end
    (4, (16, 16), (8, 8), (2, 2), (2, 2), (0, 0), 1),
]


def _max_pool2d(random: np.random.Generator) -> Iterator[Launch]:
    launch = Maker("max_pool2d.cu")
    for planes, image, windows, size, stride, before, grid in POOLS:
        x = random.integers(-3, 3, (planes, *image)).astype(F4)  # small integers: many are equal
        if x.size > 1:
            x[0, :3, :3] = -np.inf
            x[-1, 2:4, 1:3] = np.nan
        y, argmax = _pooled(x, windows, size, stride, before)
        gy = random.standard_normal(y.shape).astype(F4)
        gx = np.zeros((planes, image[0] * image[1]), F4)
        for plane in range(planes):
            np.add.at(gx[plane], argmax[plane].ravel(), gy[plane].ravel())
        shape = (*image, *windows, *size, *stride, *before, 1, 1)  # elements that lie together
        label = f"image={image} kernel={size}"
        for where in (Out(argmax), null(I4)):
            yield launch(
                "max_pool2d_forward<float>", grid, x, Out(y), where, y.size, *shape, label=label
            )
        yield launch(
            "max_pool2d_backward<float>", grid, gy, argmax, Out(gx), gx.size, *shape, label=label
        )


def _pooled(
    x: np.ndarray,
    windows: tuple[int, int],
    size: tuple[int, int],
    stride: tuple[int, int],
    before: tuple[int, int],
) -> tuple[np.ndarray, np.ndarray]:
    """Maximum and its position in the plane, for each window; np.argmax takes a NaN first."""
    y = np.empty((len(x), *windows), F4)
    argmax = np.empty(y.shape, I4)
    width = x.shape[2]
    for plane, u, v in np.ndindex(*y.shape):
        rows = range(u * stride[0] - before[0], u * stride[0] - before[0] + size[0])
        columns = range(v * stride[1] - before[1], v * stride[1] - before[1] + size[1])
        pixels = [
            h * width + w for h in rows for w in columns if 0 <= h < x.shape[1] and 0 <= w < width
        ]
        seen = x[plane].ravel()[pixels]
        y[plane, u, v] = seen[np.argmax(seen)]
        argmax[plane, u, v] = pixels[np.argmax(seen)]
    return y, argmax


# shape of x, kernel size, stride, padding, dilation
WINDOWS = [
    ((1, 1, 1, 1), (1, 1), (1, 1), (0, 0), (1, 1)),
    ((1, 1, 16, 16), (1, 1), (1, 1), (0, 0), (1, 1)),  # a full block
    ((2, 3, 5, 4), (3, 2), (2, 1), (1, 1), (1, 2)),
    ((1, 2, 7, 6), (2, 3), (3, 2), (2, 1), (1, 1)),
    ((2, 1, 9, 9), (2, 2), (3, 3), (0, 0), (1, 1)),
]


def _im2col(random: np.random.Generator) -> Iterator[Launch]:
    for wide in (0, 1):
        launch = Maker("im2col.cu", {"WIDE": wide})
        for shape, size, stride, padding, dilation in WINDOWS:
            x = random.standard_normal(shape).astype(F4)
            cols = reference.im2col(x, size, stride, padding, dilation).astype(F4)
            windows = [
                (shape[axis + 2] + 2 * padding[axis] - dilation[axis] * (size[axis] - 1) - 1)
                // stride[axis]
                + 1
                for axis in (0, 1)
            ]
            numbers = (*shape, *size, *windows, *stride, *padding, *dilation)
            label = f"x={shape} kernel={size}"
            yield launch(
                "im2col<float>", blocks(cols.size, BLOCK), x, Out(cols), *numbers, label=label
            )
            given = random.standard_normal(cols.shape).astype(F4)
            image = reference.col2im(given, shape[2:], size, stride, padding, dilation).astype(F4)
            yield launch(
                "col2im<float>", blocks(image.size, BLOCK), given, Out(image), *numbers, label=label
            )


FAMILIES = {"max_pool2d.cu": _max_pool2d, "im2col.cu": _im2col}
