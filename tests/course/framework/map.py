"""Exercise 9."""

import numpy as np


class Framework:
    def launch(self, kernel, grid, block, *arguments, **defines):
        if kernel == "relu":
            x, y, _ = arguments
            y.array[...] = np.maximum(x, 0)
        else:
            assert kernel == "relu_backward"
            y, gy, gx, _ = arguments
            gx.array[...] = gy * (y > 0)
