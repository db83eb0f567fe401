"""Exercise 15: shards by numpy, and a plain sum in the place of the ring."""

import numpy as np


class Framework:
    def call(self, function, *arguments):
        if function == "shard":
            n, workers = arguments
            return [(int(i[0]), int(i[-1]) + 1) for i in np.array_split(np.arange(n), workers)]
        assert function == "tg_sums"
        (gradients,) = arguments
        return [sum(gradients)] * len(gradients)
