"""Exercise 6."""

import tinygraph as tg


class Framework:
    def op(self, name):
        assert name == "SoftmaxCrossEntropy"
        return tg.cross_entropy

    def call(self, function, starts, *rest):
        assert function == "tg_learn"
        return [1.0] * len(starts)
