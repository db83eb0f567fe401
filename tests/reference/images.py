"""Images and sequences in loops: adaptive pooling.  Nothing here calls tinygraph."""

import math

import numpy as np


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
