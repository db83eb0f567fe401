"""What the ops compute, in naive loops over Python numbers.  Nothing here calls tinygraph.

N C H W    batch, channels, height, width        O     output channels
KH KW      kernel size                           OH OW output size
"""

import math
import operator

import numpy as np


def elementwise(f, *arrays):
    """Apply a function of numbers to each element of arrays that broadcast together."""
    arrays = np.broadcast_arrays(*arrays)
    out = [f(*values) for values in zip(*(a.ravel().tolist() for a in arrays), strict=True)]
    return np.array(out).reshape(arrays[0].shape)


def relu(x):
    return elementwise(lambda v: v if v > 0 else 0.0, x)


def as_pair(value):
    return value if isinstance(value, tuple) else (value, value)


def window_layout(size, kernel, stride, padding, dilation=1, ceil_mode=False):
    """Padding before the first pixel and number of windows on one axis, by trying positions."""
    span = dilation * (kernel - 1) + 1
    if padding == "same":
        count = math.ceil(size / stride)
        return max((count - 1) * stride + span - size, 0) // 2, count
    count = 0
    while count * stride + span <= size + 2 * padding:
        count += 1
    starts_inside = count * stride < size + padding  # in the input or its low padding
    leftover = (count - 1) * stride + span < size + 2 * padding
    if ceil_mode and leftover and starts_inside:
        count += 1
    return padding, count


def windows(x, kernel_size, stride=1, padding=0, dilation=1, ceil_mode=False):
    """For each window (u, v): the list of (i, j, h, w) of its offsets and the pixels they meet."""
    kernel, step, gap = as_pair(kernel_size), as_pair(stride), as_pair(dilation)
    pads = ("same", "same") if padding == "same" else as_pair(padding)
    (top, oh), (left, ow) = (
        window_layout(x.shape[2 + a], kernel[a], step[a], pads[a], gap[a], ceil_mode)
        for a in (0, 1)
    )
    found = {}
    for u in range(oh):
        for v in range(ow):
            found[u, v] = [
                (i, j, u * step[0] + i * gap[0] - top, v * step[1] + j * gap[1] - left)
                for i in range(kernel[0])
                for j in range(kernel[1])
            ]
    return found, oh, ow


def pixel(x, n, c, h, w):
    """x[n, c, h, w], or 0 in the padding."""
    inside = 0 <= h < x.shape[2] and 0 <= w < x.shape[3]
    return x[n, c, h, w] if inside else 0.0


def im2col(x, kernel_size, stride=1, padding=0, dilation=1):
    n, c = x.shape[:2]
    kh, kw = as_pair(kernel_size)
    at, oh, ow = windows(x, kernel_size, stride, padding, dilation)
    cols = np.zeros((n, c, kh, kw, oh, ow))
    for a in range(n):
        for b in range(c):
            for (u, v), offsets in at.items():
                for i, j, h, w in offsets:
                    cols[a, b, i, j, u, v] = pixel(x, a, b, h, w)
    return cols.reshape(n, c * kh * kw, oh * ow)


def col2im(cols, output_size, kernel_size, stride=1, padding=0, dilation=1):
    kh, kw = as_pair(kernel_size)
    n, c = cols.shape[0], cols.shape[1] // (kh * kw)
    image = np.zeros((n, c, *as_pair(output_size)))
    at, oh, ow = windows(image, kernel_size, stride, padding, dilation)
    cols = cols.reshape(n, c, kh, kw, oh, ow)
    for a in range(n):
        for b in range(c):
            for (u, v), offsets in at.items():
                for i, j, h, w in offsets:
                    if 0 <= h < image.shape[2] and 0 <= w < image.shape[3]:
                        image[a, b, h, w] += cols[a, b, i, j, u, v]
    return image


def conv2d(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    n, (o, c_group, kh, kw) = len(x), w.shape
    at, oh, ow = windows(x, (kh, kw), stride, padding, dilation)
    y = np.zeros((n, o, oh, ow))
    for a in range(n):
        for f in range(o):
            first = f // (o // groups) * c_group  # the first channel of the filter's group
            for (u, v), offsets in at.items():
                total = 0.0 if b is None else b[f]
                for k in range(c_group):
                    for i, j, h, q in offsets:
                        total += w[f, k, i, j] * pixel(x, a, first + k, h, q)
                y[a, f, u, v] = total
    return y


def max_pool2d(x, kernel_size, stride=None, padding=0, dilation=1, *, ceil_mode=False):
    n, c = x.shape[:2]
    stride = kernel_size if stride is None else stride
    at, oh, ow = windows(x, kernel_size, stride, padding, dilation, ceil_mode)
    y = np.zeros((n, c, oh, ow))
    for a in range(n):
        for b in range(c):
            for (u, v), offsets in at.items():
                seen = [
                    x[a, b, h, w]
                    for _, _, h, w in offsets
                    if 0 <= h < x.shape[2] and 0 <= w < x.shape[3]
                ]
                y[a, b, u, v] = math.nan if any(map(math.isnan, seen)) else max(seen)
    return y


def linear(x, w, b=None):
    rows = x.reshape(-1, x.shape[-1]).tolist()
    bias = [0.0] * len(w) if b is None else b.tolist()
    out = [
        [
            sum(p * q for p, q in zip(row, weights, strict=True)) + shift
            for weights, shift in zip(w.tolist(), bias, strict=True)
        ]
        for row in rows
    ]
    return np.array(out).reshape(*x.shape[:-1], len(w))


def along(f, x, axis):
    """Apply a function from list to list along one axis."""
    moved = np.moveaxis(x, axis, -1)
    out = [f(row) for row in moved.reshape(-1, moved.shape[-1]).tolist()]
    return np.moveaxis(np.array(out).reshape(moved.shape), -1, axis)


def _log_softmax(row):
    largest = max(row)
    log_total = math.log(sum(math.exp(v - largest) for v in row))
    return [v - largest - log_total for v in row]


def softmax(x, axis=-1):
    return along(lambda row: [math.exp(v) for v in _log_softmax(row)], x, axis)


def log_softmax(x, axis=-1):
    return along(_log_softmax, x, axis)


def softmax_cross_entropy(logits, labels, reduction="mean", ignore_index=None):
    rows = np.moveaxis(logits, 1, -1)
    shape = rows.shape[:-1]
    log_p = [_log_softmax(row) for row in rows.reshape(-1, logits.shape[1]).tolist()]
    if labels.dtype.kind == "f":
        weights = np.moveaxis(labels, 1, -1).reshape(-1, logits.shape[1]).tolist()
        losses = [
            -sum(t * q for t, q in zip(ts, qs, strict=True))
            for ts, qs in zip(weights, log_p, strict=True)
        ]
        counted = len(losses)
    else:
        flat = labels.ravel().tolist()
        losses = [0.0 if t == ignore_index else -q[t] for t, q in zip(flat, log_p, strict=True)]
        counted = sum(t != ignore_index for t in flat)
    return reduced(losses, shape, reduction, counted)


def reduced(losses, shape, reduction, counted=None):
    """One of the three reductions of a list of losses."""
    if reduction == "none":
        return np.array(losses).reshape(shape)
    total = math.fsum(losses)
    return np.array(total if reduction == "sum" else total / (counted or len(losses)))


def mse_loss(x, y, reduction="mean"):
    losses = [(p - q) ** 2 for p, q in zip(x.ravel().tolist(), y.ravel().tolist(), strict=True)]
    return reduced(losses, x.shape, reduction)


def of_numbers(f):
    """The function of arrays that applies a function of numbers to each element."""
    return lambda *arrays: elementwise(f, *arrays)


add, sub, mul = of_numbers(operator.add), of_numbers(operator.sub), of_numbers(operator.mul)
div, power = of_numbers(operator.truediv), of_numbers(math.pow)
maximum, minimum = of_numbers(max), of_numbers(min)
neg, absolute = of_numbers(operator.neg), of_numbers(operator.abs)
exp, log, sqrt, tanh = map(of_numbers, (math.exp, math.log, math.sqrt, math.tanh))
less, less_equal = of_numbers(operator.lt), of_numbers(operator.le)
greater, greater_equal = of_numbers(operator.gt), of_numbers(operator.ge)
equal, not_equal = of_numbers(operator.eq), of_numbers(operator.ne)
sigmoid = of_numbers(lambda v: 1 / (1 + math.exp(-v)))
where = of_numbers(lambda condition, a, b: a if condition else b)


def astype(x, dtype="float64"):
    convert = int if np.dtype(dtype).kind in "iu" else float
    return elementwise(convert, x).astype(dtype)


def matmul(x, w):
    rows = x[None] if x.ndim == 1 else x
    columns = w[:, None] if w.ndim == 1 else w
    batch = np.broadcast_shapes(rows.shape[:-2], columns.shape[:-2])
    (m, k), n = rows.shape[-2:], columns.shape[-1]
    rows, columns = np.broadcast_to(rows, (*batch, m, k)), np.broadcast_to(columns, (*batch, k, n))
    y = np.zeros((*batch, m, n))
    for at in np.ndindex(y.shape):
        *b, i, j = at
        y[at] = sum(rows[(*b, i, q)] * columns[(*b, q, j)] for q in range(k))
    return y.reshape((*batch, *(m,) * (x.ndim > 1), *(n,) * (w.ndim > 1)))


def over_axes(f, x, axis, keepdims):
    """Apply a function from list to number to the elements that meet over the given axes."""
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = {a % x.ndim for a in axes}
    sets = {}
    for index in np.ndindex(x.shape):  # row by row
        kept = tuple(0 if a in axes else i for a, i in enumerate(index))
        sets.setdefault(kept, []).append(x[index].item())
    shape = [1 if a in axes else n for a, n in enumerate(x.shape)]
    out = np.array([f(sets[index]) for index in np.ndindex(*shape)]).reshape(shape)
    return out if keepdims else out.reshape([n for a, n in enumerate(x.shape) if a not in axes])


def sum_over(x, axis=None, keepdims=False):
    return over_axes(sum, x, axis, keepdims)


def count_nonzero(x, axis=None, keepdims=False):
    return over_axes(lambda values: sum(v != 0 for v in values), x, axis, keepdims)


def any_over(x, axis=None, keepdims=False):
    return over_axes(any, x, axis, keepdims)


def all_over(x, axis=None, keepdims=False):
    return over_axes(all, x, axis, keepdims)


def product_over(x, axis=None, keepdims=False):
    return over_axes(math.prod, x, axis, keepdims)


def mean_over(x, axis=None, keepdims=False):
    return over_axes(lambda values: math.fsum(values) / len(values), x, axis, keepdims)


def max_over(x, axis=None, keepdims=False):
    return over_axes(
        lambda values: math.nan if any(map(math.isnan, values)) else max(values), x, axis, keepdims
    )


def refilled(x, shape):
    """The elements of x, row by row, in another shape."""
    y = np.empty(shape)
    for to, source in zip(np.ndindex(*shape), np.ndindex(x.shape), strict=True):
        y[to] = x[source]
    return y


def reshape(x, shape):
    sizes = shape if isinstance(shape, tuple) else (shape,)
    left = x.size // math.prod(n for n in sizes if n != -1) if -1 in sizes else None
    return refilled(x, tuple(left if n == -1 else n for n in sizes))


def flatten(x, start_dim=0, end_dim=-1):
    axes = range(max(x.ndim, 1))
    first, last = axes[start_dim], axes[end_dim]
    joined = math.prod(x.shape[first : last + 1])
    return refilled(x, (*x.shape[:first], joined, *x.shape[last + 1 :]))


def transpose(x, axes=None):
    order = list(range(x.ndim))[::-1] if axes is None else [a % x.ndim for a in axes]
    y = np.empty([x.shape[a] for a in order])
    for index in np.ndindex(x.shape):
        y[tuple(index[a] for a in order)] = x[index]
    return y


def getitem(x, index):
    """numpy's own indexing is the definition here; gradients are held to finite differences."""
    return np.array(x[index])


def concatenate(*arrays, axis=0):
    axis %= arrays[0].ndim
    shape = list(arrays[0].shape)
    shape[axis] = sum(a.shape[axis] for a in arrays)
    y, start = np.empty(shape), 0
    for a in arrays:
        for index in np.ndindex(a.shape):
            y[tuple(i + start if k == axis else i for k, i in enumerate(index))] = a[index]
        start += a.shape[axis]
    return y


def stack(*arrays, axis=0):
    axis %= arrays[0].ndim + 1
    y = np.empty((*arrays[0].shape[:axis], len(arrays), *arrays[0].shape[axis:]))
    for t, a in enumerate(arrays):
        for index in np.ndindex(a.shape):
            y[(*index[:axis], t, *index[axis:])] = a[index]
    return y


def pad(x, pad_width, value=0.0):
    widths = pad_width if isinstance(pad_width, tuple) else (pad_width, pad_width)
    widths = widths if widths and isinstance(widths[0], tuple) else (widths,) * x.ndim
    y = np.full([b + n + a for (b, a), n in zip(widths, x.shape, strict=True)], value)
    for index in np.ndindex(x.shape):
        y[tuple(i + b for i, (b, _) in zip(index, widths, strict=True))] = x[index]
    return y
