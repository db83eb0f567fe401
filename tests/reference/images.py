"""Images and sequences in loops: pooling, painting, borders.  Nothing here calls tinygraph."""

import math
from fractions import Fraction

import numpy as np

from tests.reference.basics import as_pair, conv2d, max_pool2d
from tests.reference.normalization import avg_pool2d


def _window(u, size, parts):
    """The elements that part u of an axis touches: [h, h + 1) meets [u, u + 1) * size / parts."""
    return [h for h in range(size) if h * parts < (u + 1) * size and (h + 1) * parts > u * size]


def adaptive_avg_pool2d(x, output_size):
    sizes = output_size if isinstance(output_size, tuple) else (output_size, output_size)
    oh, ow = (n if n else x.shape[2 + a] for a, n in enumerate(sizes))
    y = np.zeros((*x.shape[:2], oh, ow))
    for n, c, u, v in np.ndindex(y.shape):
        rows, columns = _window(u, x.shape[2], oh), _window(v, x.shape[3], ow)
        values = [x[n, c, h, w] for h in rows for w in columns]
        y[n, c, u, v] = math.fsum(values) / len(values)
    return y


def adaptive_avg_pool1d(x, output_size):
    return adaptive_avg_pool2d(x[:, :, None], (1, output_size))[:, :, 0]


def conv_transpose2d(x, w, b=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Each pixel paints its filter into a canvas, of which the padding is cut off."""
    (n, c, h, width), (_, o_group, kh, kw) = x.shape, w.shape
    step, pad, more, gap = map(as_pair, (stride, padding, output_padding, dilation))
    high, wide = (
        (size - 1) * step[a] + gap[a] * (k - 1) + 1 + more[a]
        for a, (size, k) in enumerate(((h, kh), (width, kw)))
    )
    canvas = np.zeros((n, o_group * groups, high, wide))
    if b is not None:
        canvas += b[:, None, None]
    for a, k, u, v in np.ndindex(x.shape):
        first = k // (c // groups) * o_group
        for o, i, j in np.ndindex(w.shape[1:]):
            at = a, first + o, u * step[0] + i * gap[0], v * step[1] + j * gap[1]
            canvas[at] += x[a, k, u, v] * w[k, o, i, j]
    return canvas[:, :, pad[0] : high - pad[0], pad[1] : wide - pad[1]]


def conv_transpose1d(x, w, b=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    settings = (1, stride), (0, padding), (0, output_padding), groups, (1, dilation)
    return conv_transpose2d(x[:, :, None], w[:, :, None], b, *settings)[:, :, 0]


def conv1d(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    pads = padding if padding == "same" else (0, padding)
    settings = (1, stride), pads, (1, dilation), groups
    return conv2d(x[:, :, None], w[:, :, None], b, *settings)[:, :, 0]


def interpolate(
    x,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
):
    """Output by output: the pixels that it reads, by exact fractions, and their shares."""
    if x.ndim == 3:
        scales, sizes = (None if v is None else (1, v) for v in (scale_factor, size))
        rest = mode, align_corners, recompute_scale_factor
        return interpolate(x[:, :, None], sizes, scales, *rest)[:, :, 0]
    ratios, out = [], []
    for a, n in enumerate(x.shape[2:]):
        factor = None if scale_factor is None else Fraction(as_pair(scale_factor)[a])
        out.append(as_pair(size)[a] if factor is None else math.floor(n * factor))
        by_sizes = factor is None or recompute_scale_factor or out[a] == n  # as PyTorch copies it
        ratios.append(Fraction(n, out[a]) if by_sizes else 1 / factor)
    y = np.zeros((*x.shape[:2], *out))
    for n, c, *place in np.ndindex(y.shape):
        reads = [
            _reads(u, x.shape[2 + a], out[a], ratios[a], mode, align_corners)
            for a, u in enumerate(place)
        ]
        y[n, c, place[0], place[1]] = sum(
            float(p * q) * x[n, c, h, w] for h, p in reads[0] for w, q in reads[1]
        )
    return y


def _reads(u, size, out, ratio, mode, align_corners):
    """The pixels that output u reads on one axis, each with its share."""
    if mode == "nearest":
        return [(min(math.floor(u * ratio), size - 1), 1)]
    half = Fraction(1, 2)
    if mode == "nearest-exact":
        return [(min(math.floor((u + half) * ratio), size - 1), 1)]
    if align_corners:
        at = Fraction(u * (size - 1), out - 1) if out > 1 else Fraction(0)
    else:
        at = min(max((u + half) * ratio - half, Fraction(0)), Fraction(size - 1))
    first = math.floor(at)
    if first == at:
        return [(first, 1)]
    return [(first, 1 - (at - first)), (first + 1, at - first)]


def bordered(x, pad_width, value=0.0, mode="reflect"):
    """Element by element: where each place of the border reads, by walking from the edge."""
    widths = pad_width if isinstance(pad_width, tuple) else (pad_width, pad_width)
    widths = widths if widths and isinstance(widths[0], tuple) else (widths,) * x.ndim
    y = np.zeros([b + n + a for (b, a), n in zip(widths, x.shape, strict=True)])
    for index in np.ndindex(y.shape):
        y[index] = x[
            tuple(
                _inside(i - b, n, mode) for i, n, (b, _) in zip(index, x.shape, widths, strict=True)
            )
        ]
    return y


def _inside(i, size, mode):
    if mode == "circular":
        return i % size
    if mode == "replicate":
        return min(max(i, 0), size - 1)
    return -i if i < 0 else 2 * (size - 1) - i if i >= size else i


def _along(pool, x, kernel_size, stride, padding, **options):
    step = (1, kernel_size if stride is None else stride)
    pads = padding if padding == "same" else (0, padding)
    return pool(x[:, :, None], (1, kernel_size), step, pads, **options)[:, :, 0]


def max_pool1d(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    gaps = (1, dilation)
    return _along(max_pool2d, x, kernel_size, stride, padding, dilation=gaps, ceil_mode=ceil_mode)


def avg_pool1d(x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    options = {"ceil_mode": ceil_mode, "count_include_pad": count_include_pad}
    return _along(avg_pool2d, x, kernel_size, stride, padding, **options)
