"""Exercise 3: by the graph, which finds the gradients itself."""

import numpy as np

import tinygraph as tg


def outputs(x, W1, b1, W2, b2):
    h = tg.sigmoid(tg.linear(x, W1, b1))
    return h, tg.sigmoid(tg.linear(h, W2, b2))


class Framework:
    def call(self, function, *arguments):
        if function == "forward":
            return tuple(tensor.numpy() for tensor in outputs(*map(tg.Tensor, arguments)))
        if function == "tg_step":
            return True
        assert function == "step"
        x, y, *values, lr = arguments
        parameters = [tg.Parameter(value) for value in values]
        o = outputs(tg.Tensor(x), *parameters)[1]
        gradients = tg.autograd.grad(tg.half_squared_error(o, y), parameters)
        return [
            np.asarray(p.value - lr * g.value) for p, g in zip(parameters, gradients, strict=True)
        ]
