"""Several steps that one op does, one after the other."""

import numpy as np

from tests.reference.basics import conv2d, max_pool2d


def conv2d_relu_max_pool2d(x, w, b=None, stride=1, padding=0, dilation=1, *, pool=2):
    y = conv2d(x, w, b, stride, padding, dilation)
    y = np.array([0.0 if v <= 0 else v for v in y.ravel().tolist()]).reshape(y.shape)
    return max_pool2d(y, pool)
