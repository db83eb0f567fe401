"""Exercise 13."""

import numpy as np

import tinygraph as tg
from tinygraph_course.exercises.fusion.steps import moved


class Framework:
    def launch(self, kernel, grid, block, *arguments, **defines):
        getattr(self, kernel)(*(getattr(a, "array", a) for a in arguments))

    def bias_relu(self, x, b, y, N, C, P):
        y[...] = np.maximum(x.reshape(N, C, P) + b[:, None], 0).reshape(y.shape)

    def delta(self, gy, w, h, gx, N, OUT, IN):
        gx[...] = gy @ w * (h > 0)

    def conv_relu_pool(self, x, w, b, y, argmax, *sizes):
        a = tg.relu(tg.conv2d(x, w, b)).value
        parts = np.stack([a[:, :, q // 2 :: 2, q % 2 :: 2] for q in range(4)])
        y[...], argmax[...] = parts.max(0), parts.argmax(0)

    def tg_step_4(self, predicted, fused, N, OUT, IN):
        predicted[...] = moved(fused, N, OUT, IN)
