"""Exercise 7: a convolution by loops, by columns and a product, and its gradients.

    N C H W    samples, channels, height and width of the images
    O KH KW    filters, and height and width of each
    OH OW      height and width of the output
    k s p      kernel size, stride and padding; from step 2 on they are pairs: rows, columns

    y[n, o, u, v] = b[o] + sum over c, i, j of
                    w[o, c, i, j] * x[n, c, u * s[0] + i - p[0], v * s[1] + j - p[1]]

With the windows of a sample as columns of a matrix that is a product: y = w @ cols + b.
"""

from dataclasses import dataclass

import numpy as np

import tinygraph as tg


def out_size(n, k, s, p):
    """Step 1: how many places a kernel of k pixels has on n pixels, with p zeros on either side."""
    # BEGIN SOLUTION 1: how far can the kernel move, and how many strides are that?
    return (n + 2 * p - k) // s + 1
    # END SOLUTION


def direct(x, w, b, s, p):
    """Step 2: y (N, O, OH, OW) of x (N, C, H, W), w (O, C, KH, KW) and b (O,), by loops."""
    # BEGIN SOLUTION 2: pad the image once, then go over the outputs (u, v)
    (H, W), (KH, KW) = x.shape[2:], w.shape[2:]
    OH, OW = out_size(H, KH, s[0], p[0]), out_size(W, KW, s[1], p[1])
    image = np.pad(x, ((0, 0), (0, 0), (p[0], p[0]), (p[1], p[1])))
    y = np.empty((len(x), len(w), OH, OW), x.dtype)
    for u in range(OH):
        for v in range(OW):
            top, left = u * s[0], v * s[1]
            window = image[:, None, :, top : top + KH, left : left + KW]  # (N, 1, C, KH, KW)
            y[:, :, u, v] = (w * window).sum(axis=(2, 3, 4)) + b
    return y
    # END SOLUTION


def im2col(x, k, s, p):
    """Step 3: cols (N, C*KH*KW, OH*OW): a column for each window (u, v), its pixels (c, i, j)."""
    # BEGIN SOLUTION 3: pixel (i, j) of all windows is one slice of the padded image
    (N, C, H, W), (KH, KW) = x.shape, k
    OH, OW = out_size(H, KH, s[0], p[0]), out_size(W, KW, s[1], p[1])
    image = np.pad(x, ((0, 0), (0, 0), (p[0], p[0]), (p[1], p[1])))
    cols = np.empty((N, C, KH, KW, OH, OW), x.dtype)
    for i in range(KH):
        for j in range(KW):
            cols[:, :, i, j] = image[:, :, i : i + s[0] * OH : s[0], j : j + s[1] * OW : s[1]]
    return cols.reshape(N, C * KH * KW, OH * OW)
    # END SOLUTION


def gemm(x, w, b, s, p):
    """Step 4: the same as `direct`, by im2col and a matrix product."""
    # BEGIN SOLUTION 4: with each filter as a row, w @ cols; then the bias
    (H, W), (KH, KW) = x.shape[2:], w.shape[2:]
    OH, OW = out_size(H, KH, s[0], p[0]), out_size(W, KW, s[1], p[1])
    cols = im2col(x, (KH, KW), s, p)  # (N, C*KH*KW, OH*OW)
    y = w.reshape(len(w), -1) @ cols + b[:, None]  # (N, O, OH*OW)
    return y.reshape(len(x), len(w), OH, OW)
    # END SOLUTION


def col2im(cols, size, k, s, p):
    """Step 5: images (N, C, *size): each pixel is the sum of all entries im2col made of it."""
    # BEGIN SOLUTION 5: add into a padded image of zeros, then cut the padding off
    N, (H, W), (KH, KW) = len(cols), size, k
    C = cols.shape[1] // (KH * KW)
    OH, OW = out_size(H, KH, s[0], p[0]), out_size(W, KW, s[1], p[1])
    cols = cols.reshape(N, C, KH, KW, OH, OW)
    image = np.zeros((N, C, H + 2 * p[0], W + 2 * p[1]), cols.dtype)
    for i in range(KH):
        for j in range(KW):
            image[:, :, i : i + s[0] * OH : s[0], j : j + s[1] * OW : s[1]] += cols[:, :, i, j]
    return image[:, :, p[0] : p[0] + H, p[1] : p[1] + W]
    # END SOLUTION


@dataclass(frozen=True)
class Conv2d(tg.Op):
    """Step 6: the op of the graph; `infer` is given."""

    stride: tuple
    padding: tuple

    def infer(self, x, w, b):
        (H, W), (KH, KW), s, p = x.shape[2:], w.shape[2:], self.stride, self.padding
        OH, OW = out_size(H, KH, s[0], p[0]), out_size(W, KW, s[1], p[1])
        return tg.Spec((x.shape[0], w.shape[0], OH, OW), x.dtype)

    def forward(self, mem, x, w, b):
        """The output, and what backward needs."""
        # BEGIN SOLUTION 6: the gradient of w needs x, and that of x needs w
        return gemm(x, w, b, self.stride, self.padding), (x, w)
        # END SOLUTION

    def backward(self, mem, gy, saved, needs):
        """A tuple: one gradient for each input, of its shape."""
        # BEGIN SOLUTION 6: y = w @ cols + b is a linear layer; col2im leads from cols to x
        x, w = saved
        size, k = x.shape[2:], w.shape[2:]
        gy = gy.reshape(len(x), len(w), -1)  # (N, O, OH*OW)
        cols, rows = im2col(x, k, self.stride, self.padding), w.reshape(len(w), -1)
        gx = col2im(rows.T @ gy, size, k, self.stride, self.padding)
        gw = (gy @ cols.transpose(0, 2, 1)).sum(axis=0).reshape(w.shape)
        gb = gy.sum(axis=(0, 2))
        return gx, gw, gb
        # END SOLUTION
