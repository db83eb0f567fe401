"""Exercise 5: problems, which layers are right, and those by the framework's ops."""

import numpy as np

import tinygraph as tg
from tinygraph_course.exercises.gradcheck.ops import RIGHT


class Framework:
    def call(self, function, *arguments):
        if function == "tg_problems":
            return [(np.ones((1, 1)), np.ones((1, 1)), np.ones(1))] * arguments[0]
        number, *arrays = arguments
        if function == "tg_agrees":
            return number in RIGHT
        below = [tg.Tensor(a, requires_grad=True) for a in arrays[-3:]]
        y = {19: tg.tanh, 9: lambda z: z}[number](tg.linear(*below))
        if function == "tg_forward":
            return y.numpy()
        return [g.numpy() for g in tg.autograd.grad(y, below, arrays[0])]
