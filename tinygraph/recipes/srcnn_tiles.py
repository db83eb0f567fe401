"""SRCNN on whole pictures of any size, in tiles under a memory limit.

    luma (H, W)   ->  edges repeated M pixels outwards  ->  tiles of the output, side x side
    each tile     <-  the network on (side + 2M) x (side + 2M) pixels

The layers pad nothing, so that a tile's numbers are those of the whole picture, and no seam shows.

Source: Dong, Loy, He, Tang, "Image super-resolution using deep convolutional networks", TPAMI 2016.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

import numpy as np

import tinygraph as tg
from tinygraph import nn
from tinygraph.base import ArgumentError, DtypeError, ShapeError, whole
from tinygraph.data.images import pillow
from tinygraph.engine import Array
from tinygraph.recipes.srcnn_colour import to_rgb, to_ycbcr
from tinygraph.recipes.srcnn_network import layers, margin

MEMORY = 16 << 20  # bytes; larger tiles leave the processor's cache and take longer
_LARGEST_SIDE = 4096
_BAND = 1 << 16  # pixels whose colours are converted at once


def tile_bytes(network: nn.Sequential, side: int) -> int:
    """What the network needs for a tile of the output of side x side pixels: bytes, about.

    The largest of its layers, with input, windows written out (im2col), output and its ReLU.

    >>> from tinygraph.recipes.srcnn_network import model
    >>> tile_bytes(model(64, 32), 100) >> 20  # most of it the 800 numbers of a 5x5x32 window
    31
    """
    most, size = 0, side + 2 * margin(network)
    for layer in layers(network):
        kernel = layer.kernel_size[0]
        after = size - kernel + 1
        windows = layer.in_channels * kernel * kernel + 2 * layer.out_channels
        most = max(most, layer.in_channels * size * size + windows * after * after)
        size = after
    return most * layers(network)[0].weight.dtype.itemsize


def tile_side(network: nn.Sequential, memory: int) -> int:
    """The side of the largest tiles that keep within a number of bytes.

    Raises
    ------
    ArgumentError
        Not even a tile of one pixel does.
    """
    least = tile_bytes(network, 1)
    if whole("super_resolve", "memory", memory) < least:
        expected = f"at least {least} bytes, for a tile of one pixel"
        raise ArgumentError("super_resolve", "memory", expected, memory)
    sides = range(1, _LARGEST_SIDE + 1)
    return bisect_right(sides, memory, key=lambda side: tile_bytes(network, side))


def enhance(network: nn.Sequential, luma: Array, memory: int = MEMORY) -> Array:
    """The network's output for an enlarged luma, of the same size.

    Luma lies from 0 to 1, and beyond its edges the outermost pixels are repeated; what comes may
    leave 0 to 1.  The network takes at most `memory` bytes on the way; input and output come on
    top.

    Raises
    ------
    ShapeError
        Not two axes, or no pixel.
    ArgumentError
        Memory that does not suffice for one pixel.

    Examples
    --------
    >>> from tinygraph.recipes.srcnn_network import model
    >>> enhance(model(4, 2), np.zeros((5, 7), np.float32)).shape
    (5, 7)
    """
    if luma.ndim != 2 or not luma.size:
        raise ShapeError("srcnn", "luma", "(H, W), not empty", luma.shape)
    side, m = tile_side(network, memory), margin(network)
    dtype = layers(network)[0].weight.dtype
    padded = np.pad(luma.astype(dtype, copy=False), m, mode="edge")  # (H + 2M, W + 2M)
    out = np.empty(luma.shape, dtype)
    height, width = luma.shape
    device = layers(network)[0].weight.device
    with tg.no_grad():
        for top in range(0, height, side):
            for left in range(0, width, side):
                bottom, right = min(top + side, height), min(left + side, width)
                tile = padded[None, None, top : bottom + 2 * m, left : right + 2 * m]
                result = network(tg.Tensor(np.ascontiguousarray(tile), device=device))
                out[top:bottom, left:right] = result.numpy()[0, 0]
    return out


def super_resolve(
    network: nn.Sequential, pixels: Array, scale: int = 3, memory: int = MEMORY
) -> Array:
    """A picture enlarged: its luma by bicubic interpolation and SRCNN, its chroma by bicubic alone.

    From bytes (3, H, W), red, green and blue, to bytes (3, scale * H, scale * W); `memory` is as
    for `enhance`.

    Raises
    ------
    ShapeError, DtypeError
        No such array.
    ArgumentError
        A bad scale, or too little memory.
    DatasetError
        Pillow is not installed.

    Examples
    --------
    >>> from tinygraph.recipes.srcnn_network import model
    >>> super_resolve(model(4, 2), np.zeros((3, 5, 7), np.uint8), scale=3).shape
    (3, 15, 21)
    """
    if pixels.ndim != 3 or len(pixels) != 3 or not pixels.size:
        raise ShapeError("super_resolve", "pixels", "(3, H, W), not empty", pixels.shape)
    if pixels.dtype != np.uint8:
        raise DtypeError("super_resolve", "pixels", "uint8", pixels.dtype)
    scale = whole("super_resolve", "scale", scale)
    ycbcr = np.empty(pixels.shape, np.float32)
    for band in _bands(pixels):
        ycbcr[:, band] = to_ycbcr(np.divide(pixels[:, band], 255, dtype=np.float32))
    large = [enlarge(plane, scale) for plane in ycbcr]  # three of (scale * H, scale * W)
    large[0] = enhance(network, large[0], memory)
    result = np.empty((3, *large[0].shape), np.uint8)
    for band in _bands(result):
        rgb = to_rgb(np.stack([plane[band] for plane in large]))
        result[:, band] = np.rint(255 * rgb).astype(np.uint8)
    return result


def _bands(image: Array) -> Iterator[slice]:
    """The rows of a picture (3, H, W), some at a time: colours are converted in float64."""
    height, width = image.shape[1:]
    step = max(_BAND // width, 1)
    return (slice(top, top + step) for top in range(0, height, step))


def enlarge(plane: Array, scale: int) -> Array:
    """A plane (H, W) of float32, enlarged by bicubic interpolation."""
    library: Any = pillow("super_resolve")
    height, width = plane.shape
    image = library.fromarray(np.ascontiguousarray(plane, np.float32))
    size = (scale * width, scale * height)
    return np.asarray(image.resize(size, library.Resampling.BICUBIC))
