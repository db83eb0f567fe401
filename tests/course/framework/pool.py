"""Exercise 8."""

import tinygraph as tg


class Framework:
    def op(self, name, kernel, stride):
        assert name == "MaxPool2d"
        return tg.nn.MaxPool2d(kernel, stride)
