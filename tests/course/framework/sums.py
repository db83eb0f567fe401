"""Exercise 10."""

import numpy as np


class Framework:
    def launch(self, kernel, grid, block, x, sums, n, **defines):
        assert kernel == "block_sums" and block == defines["BLOCK"]
        sums.array[...] = np.add.reduceat(x[:n], np.arange(0, n, block))
