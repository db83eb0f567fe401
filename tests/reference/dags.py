"""A graph evaluated without a graph: each step in its order, gradients by the complex step.

    df/dx = Im f(x + i h) / h        exact to rounding, for h far below rounding, if f is analytic

Nothing is walked backwards and nothing is summed over uses, so it shares no idea with the engine.
Piecewise functions choose their piece by the real part; how near the choice was is kept.

Source: Squire, Trapp, "Using complex variables to estimate derivatives of real functions", SIAM
Review 40 (1998).
"""

import numpy as np

H = 1e-30


class Dag:
    """The steps of a graph: (name of the op, numbers of the nodes that it takes, keywords)."""

    def __init__(self, steps, outputs, own=None):
        self.steps, self.outputs, self.own = steps, outputs, own or {}
        self.nearest_kink = np.inf  # the smallest distance of an element to another piece

    def values(self, leaves):
        """The outputs, from leaves of real or complex numbers."""
        nodes = [np.asarray(x) for x in leaves]
        for name, inputs, kwargs in self.steps:
            function = self.own.get(name) or getattr(self, f"_{name}")
            nodes.append(np.asarray(function(*[nodes[i] for i in inputs], **kwargs)))
        return [nodes[i] for i in self.outputs]

    def gradient(self, leaves, which, upstream):
        """d sum(upstream * outputs) / d leaves[which], one element after the other."""
        gradient = np.zeros(leaves[which].shape)
        for index in np.ndindex(gradient.shape):
            moved = [np.array(x, complex) for x in leaves]
            moved[which][index] += 1j * H
            outputs = self.values(moved)
            total = sum(np.sum(g * y.imag) for g, y in zip(upstream, outputs, strict=True))
            gradient[index] = total / H
        return gradient

    def _choose(self, distance, first, second):
        """`first` where the distance is positive, else `second`."""
        self.nearest_kink = min(self.nearest_kink, np.min(np.abs(distance.real), initial=np.inf))
        return np.where(distance.real > 0, first, second)

    def _relu(self, x):
        return self._choose(x, x, 0 * x)

    def _abs(self, x):
        return self._choose(x, x, -x)

    def _maximum(self, x, y):
        return self._choose(x - y, x + 0 * y, y + 0 * x)

    _neg = staticmethod(lambda x: -x)
    _add = staticmethod(lambda x, y: x + y)
    _sub = staticmethod(lambda x, y: x - y)
    _mul = staticmethod(lambda x, y: x * y)
    _transpose = staticmethod(lambda x: x.T)
    _tanh = staticmethod(lambda x: 1 - 2 / (np.exp(2 * x) + 1))
    _sigmoid = staticmethod(lambda x: 1 / (1 + np.exp(-x)))
    _sum = staticmethod(np.sum)
    _mean = staticmethod(lambda x, **how: np.sum(x, **how) / _count(x, how))

    @staticmethod
    def _matmul(x, y):
        rows, inner = x.shape
        out = np.zeros((rows, y.shape[1]), np.result_type(x, y))
        for i in range(rows):
            for k in range(inner):
                out[i] += x[i, k] * y[k]
        return out


def _count(x, how):
    """How many elements meet in one of the mean."""
    return x.size if how["axis"] is None else x.shape[how["axis"]]
