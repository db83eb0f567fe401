"""How near a picture comes to the original: PSNR and SSIM of luma, beside bicubic interpolation.

    PSNR = 10 log10(255**2 / mean squared error)                                    decibel
    SSIM = mean of (2 mx my + c1) (2 sxy + c2) / ((mx**2 + my**2 + c1) (sx**2 + sy**2 + c2))
        m, s: means, variances and covariance under a Gaussian window of 11 x 11, sigma 1.5
        c1 = (0.01 * 255)**2, c2 = (0.03 * 255)**2; only windows that lie inside

Luma is rounded to whole levels first, and a border as wide as the scale is left out, as papers do.

Source: Wang, Bovik, Sheikh, Simoncelli, "Image quality assessment: from error visibility to
structural similarity", IEEE TIP 2004.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tinygraph import nn
from tinygraph.base import ArgumentError, ShapeError
from tinygraph.engine import Array
from tinygraph.recipes.srcnn_samples import Pair
from tinygraph.recipes.srcnn_tiles import MEMORY, enhance

PEAK = 255.0
WINDOW, SIGMA = 11, 1.5


def psnr(x: Array, y: Array) -> float:
    """Peak signal-to-noise ratio in decibel of levels from 0 to 255; infinite for equal arrays.

    >>> round(psnr(np.full((4, 4), 100.0), np.full((4, 4), 110.0)), 2)
    28.13
    """
    _require_alike("psnr", x, y)
    error = np.mean((x.astype(np.float64) - y) ** 2)
    return 10 * math.log10(PEAK**2 / error) if error else math.inf


def ssim(x: Array, y: Array) -> float:
    """Structural similarity of two arrays (H, W) of levels from 0 to 255: 1 for equal ones.

    Raises
    ------
    ShapeError
        Two shapes, or less than 11 pixels in a direction.

    Examples
    --------
    >>> levels = np.arange(400.0).reshape(20, 20) % 256
    >>> ssim(levels, levels), bool(ssim(levels, 255 - levels) < 0)
    (1.0, True)
    """
    _require_alike("ssim", x, y)
    if x.ndim != 2 or min(x.shape) < WINDOW:
        raise ShapeError("ssim", "x", f"(H, W) of at least {WINDOW} by {WINDOW} pixels", x.shape)
    a, b = x.astype(np.float64), y.astype(np.float64)
    ma, mb = _smooth(a), _smooth(b)
    va, vb = _smooth(a * a) - ma * ma, _smooth(b * b) - mb * mb
    cov = _smooth(a * b) - ma * mb
    c1, c2 = (0.01 * PEAK) ** 2, (0.03 * PEAK) ** 2
    top = (2 * ma * mb + c1) * (2 * cov + c2)
    return float(np.mean(top / ((ma * ma + mb * mb + c1) * (va + vb + c2))))


def _smooth(x: Array) -> Array:
    """Means under the Gaussian window: (H - 10, W - 10)."""
    offsets = np.arange(WINDOW) - WINDOW // 2
    weights = np.exp(-(offsets**2) / (2 * SIGMA**2))
    weights /= weights.sum()
    for axis in (0, 1):
        count = x.shape[axis] - WINDOW + 1
        parts = (w * x.take(range(k, k + count), axis) for k, w in enumerate(weights))
        x = sum(parts, np.zeros(1))
    return x


def measure(
    network: nn.Sequential, pairs: Sequence[Pair], scale: int, memory: int = MEMORY
) -> list[dict[str, float | str]]:
    """PSNR and SSIM of the network's output for each picture, and those of bicubic interpolation.

    Each row has `name`, `psnr`, `ssim`, `bicubic_psnr` and `bicubic_ssim`.
    """
    rows: list[dict[str, float | str]] = []
    for name, low, high in pairs:
        truth, luma = levels(high[0], scale), levels(low[0], scale)
        shown = levels(enhance(network, low[0], memory), scale)
        learnt = {"psnr": psnr(shown, truth), "ssim": ssim(shown, truth)}
        bicubic = {"bicubic_psnr": psnr(luma, truth), "bicubic_ssim": ssim(luma, truth)}
        rows.append({"name": name, **learnt, **bicubic})
    return rows


def means(rows: Sequence[dict[str, float | str]]) -> dict[str, float]:
    """The mean of each number over the pictures."""
    if not rows:
        raise ArgumentError("srcnn", "pictures", "at least one to measure on", "none")
    names = [name for name in rows[0] if name != "name"]
    return {name: float(np.mean([float(row[name]) for row in rows])) for name in names}


def levels(luma: Array, border: int) -> Array:
    """Luma (H, W) from 0 to 1 as whole levels from 0 to 255, without its border."""
    inner = luma[border:-border, border:-border] if border else luma
    return np.rint(PEAK * np.clip(inner, 0, 1).astype(np.float64))


def _require_alike(op: str, x: Array, y: Array) -> None:
    if x.shape != y.shape or not x.size:
        raise ShapeError(op, "y", f"the shape {x.shape} of x, not empty", y.shape)
