"""Exercise 8: max-pooling that remembers where its maxima lie.

    N C H W   samples, channels, height and width       K S   kernel and stride, on both axes
    OH OW     how many windows there are on each axis

    y[n, c, u, v]  = max of x[n, c, u * S + i, v * S + j]  over 0 <= i, j < K
    gx[n, c, h, w] = sum of gy[n, c, u, v] over the windows whose maximum lies at (h, w)
"""

from dataclasses import dataclass

import numpy as np

import tinygraph as tg


def windows(size, kernel, stride):
    """Step 1: how many windows of `kernel` pixels lie on an axis of `size` pixels."""
    # BEGIN SOLUTION 1: the first begins at pixel 0, the last one ends inside
    return (size - kernel) // stride + 1
    # END SOLUTION


def pool(x, kernel, stride):
    """Step 2: y (N, C, OH, OW), the largest pixel of each window of x (N, C, H, W)."""
    # BEGIN SOLUTION 2: a loop over the windows (u, v), all samples and channels at once
    N, C, H, W = x.shape
    OH, OW = windows(H, kernel, stride), windows(W, kernel, stride)
    y = np.empty((N, C, OH, OW), x.dtype)
    for u in range(OH):
        for v in range(OW):
            top, left = u * stride, v * stride
            y[:, :, u, v] = x[:, :, top : top + kernel, left : left + kernel].max(axis=(2, 3))
    return y
    # END SOLUTION


def positions(x, kernel, stride):
    """Step 3: argmax (N, C, OH, OW), int32: where the maximum of each window lies in its image.

    The pixel (h, w) has the number h * W + w.  Of several maxima the first one counts, row by row.
    """
    # BEGIN SOLUTION 3: np.argmax counts the pixels of the window; those of the image are wanted
    N, C, H, W = x.shape
    OH, OW = windows(H, kernel, stride), windows(W, kernel, stride)
    argmax = np.empty((N, C, OH, OW), np.int32)
    for u in range(OH):
        for v in range(OW):
            top, left = u * stride, v * stride
            window = x[:, :, top : top + kernel, left : left + kernel].reshape(N, C, -1)
            i, j = np.divmod(window.argmax(axis=2), kernel)
            argmax[:, :, u, v] = (top + i) * W + (left + j)
    return argmax
    # END SOLUTION


def backward(gy, argmax, shape):
    """Step 4: gx of shape (N, C, H, W).  Each gy goes to the pixel that won its window."""
    # BEGIN SOLUTION 4: windows may overlap, and then a pixel can win twice
    N, C, H, W = shape
    gx = np.zeros((N, C, H * W), gy.dtype)
    n, c = np.arange(N)[:, None, None, None], np.arange(C)[:, None, None]
    np.add.at(gx, (n, c, argmax), gy)
    return gx.reshape(shape)
    # END SOLUTION


@dataclass(frozen=True)
class MaxPool2d(tg.Op):
    """Step 5: the op of the graph; `infer` is given."""

    kernel: int
    stride: int

    def infer(self, x):
        OH, OW = (windows(size, self.kernel, self.stride) for size in x.shape[2:])
        return tg.Spec((*x.shape[:2], OH, OW), x.dtype)

    def forward(self, mem, x):
        """The output, and what backward needs."""
        # BEGIN SOLUTION 5: backward needs no pixel of x
        saved = positions(x, self.kernel, self.stride), x.shape
        return pool(x, self.kernel, self.stride), saved
        # END SOLUTION

    def backward(self, mem, gy, saved, needs):
        """A tuple: one gradient for each input."""
        # BEGIN SOLUTION 5: what forward saved comes back as `saved`
        argmax, shape = saved
        return (backward(gy, argmax, shape),)
        # END SOLUTION
