"""Exercise 12."""

import numpy as np

import tinygraph as tg
from tinygraph.ops.windows.im2col import col2im, im2col


class Framework:
    """Kernels of the framework, or what its ops compute, by the names of the exercise."""

    def launch(self, kernel, grid, block, *arguments, **defines):
        getattr(self, kernel)(*(getattr(a, "array", a) for a in arguments))

    def conv(self, x, weight, b, cols, y, C, H, W, D, KH, KW, S, P, OH, OW):
        cols[...] = im2col(x, (KH, KW), stride=S, padding=P).value
        y[...] = tg.conv2d(x, weight.reshape(D, C, KH, KW), b, stride=S, padding=P).value

    def col2im(self, cols, image, N, C, H, W, KH, KW, S, P, OH, OW):
        image[...] = col2im(cols, (H, W), (KH, KW), stride=S, padding=P).value

    def pool_forward(self, x, y, argmax, planes, H, W, K, S, OH, OW):
        rows = x.reshape(planes, OH, S, OW, S).transpose(0, 1, 3, 2, 4).reshape(planes, OH, OW, -1)
        best = rows.argmax(-1)
        y[...] = np.take_along_axis(rows, best[..., None], -1).reshape(y.shape)
        corner = S * W * np.arange(OH)[:, None] + S * np.arange(OW)
        argmax[...] = (corner + best // S * W + best % S).reshape(argmax.shape)

    def pool_backward(self, gy, argmax, gx, planes, H, W, K, S, OH, OW):
        gx[...] = 0
        flat = gx.reshape(planes, H * W)
        flat[np.arange(planes)[:, None], argmax.reshape(planes, -1)] = gy.reshape(planes, -1)
