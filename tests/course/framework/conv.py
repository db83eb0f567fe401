"""Exercise 7."""

import tinygraph as tg


class Framework:
    def op(self, name, stride, padding):
        assert name == "Conv2d"
        return lambda x, w, b: tg.conv2d(x, w, b, stride, padding)
