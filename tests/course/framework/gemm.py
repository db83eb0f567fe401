"""Exercise 11."""

import numpy as np


class Framework:
    def launch(self, kernel, grid, block, a, b, c, *sizes, **defines):
        assert kernel == "double_buffered"
        np.matmul(a, b, out=c.array)
