"""Exercise 14: what makes networks train: batch norm, dropout, and three optimizers.

    N C   samples and channels        x (N, C), float        w b   scale and shift, (C,)

    batch norm   m = mean of x, v = mean of (x - m)^2, over the samples      s = sqrt(v + eps)
                 y = w * z + b    with z = (x - m) / s
    running      mean <- (1 - momentum) * mean + momentum * m        var: with v * N / (N - 1)
    dropout      y = x / (1 - p) where r >= p, else 0                r random, from 0 to below 1
    momentum     b <- momentum * b + g                               p <- p - lr * b
    adam         m <- beta1 * m + (1 - beta1) * g
                 v <- beta2 * v + (1 - beta2) * g^2
                 p <- p - lr * m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps)
    adadelta     eg <- rho * eg + (1 - rho) * g^2
                 d = sqrt(ed + eps) / sqrt(eg + eps) * g             with the new eg and the old ed
                 ed <- rho * ed + (1 - rho) * d^2                    p <- p - d
"""

from dataclasses import dataclass

import numpy as np

import tinygraph as tg


@dataclass(frozen=True)
class BatchNorm(tg.Op):
    """Step 1: batch norm as an op of the graph; `infer` is given.

    running is None in training: the mean and the variance are those of the batch.  In evaluation
    it is a pair (mean, var) of tuples of C numbers, which are constants.
    """

    eps: float
    running: tuple | None = None

    def infer(self, x, w, b):
        return x

    def forward(self, mem, x, w, b):
        """y (N, C), of the dtype of x, and what backward needs: `saved` there."""
        # BEGIN SOLUTION 1: which statistics count?  each channel has its own
        if self.running is None:
            mean, var = x.mean(axis=0), x.var(axis=0)
        else:
            mean, var = (np.array(numbers, x.dtype) for numbers in self.running)
        s = np.sqrt(var + self.eps)
        z = (x - mean) / s
        return w * z + b, (z, w, s)
        # END SOLUTION

    def backward(self, mem, gy, saved, needs):
        """The gradients of x (N, C), w (C,) and b (C,)."""
        # BEGIN SOLUTION 1: in training x acts through the mean and the variance, too
        z, w, s = saved
        gz = gy * w
        gx = gz / s
        if self.running is None:
            gx = (gz - gz.mean(axis=0) - z * (gz * z).mean(axis=0)) / s
        gw, gb = (gy * z).sum(axis=0), gy.sum(axis=0)
        return gx, gw, gb
        # END SOLUTION


def running(mean, var, batch, momentum):
    """Step 2: the pair (mean, var), each (C,), after one more batch (N, C); N is at least 2.

    momentum is the weight of the new batch, whose variance is the unbiased one: over N - 1.
    """
    # BEGIN SOLUTION 2: old ones and new ones, mixed
    mean = (1 - momentum) * mean + momentum * batch.mean(axis=0)
    var = (1 - momentum) * var + momentum * batch.var(axis=0, ddof=1)
    return mean, var
    # END SOLUTION


def dropout(x, p, uniform):
    """Step 3: a pair: y, and a function that takes gy and gives the gradient of x.

    uniform(x.shape) gives random numbers r from 0 to below 1, others at every call.  An element
    stays where r >= p, so that it is dropped with probability p, which is below 1.  y and the
    gradient have the dtype of x.
    """
    # BEGIN SOLUTION 3: what stays is made larger, so that the mean of y is x
    factor = (uniform(x.shape) >= p) / (1 - p)
    factor = factor.astype(x.dtype)

    def backward(gy):
        return gy * factor

    return x * factor, backward
    # END SOLUTION


class Momentum(tg.optim.Optimizer):
    """Step 4: descent with momentum, by the contract of tg.optim; all but `update` is given.

    `step` calls update for each parameter.  What a parameter remembers stands in its `state`.
    """

    arrays = ("buffer",)

    def __init__(self, params, lr, momentum):
        super().__init__(params, lr=lr, momentum=momentum)

    def start(self, group):
        """What the state of each parameter begins with: an array of its shape, filled with 0."""
        return {"buffer": 0.0}

    def update(self, value, grad, state, scratch, hyper):
        """Change value and state["buffer"] in place, and leave grad as it is.

        hyper["lr"] and hyper["momentum"] are numbers, scratch a list with an array to write to.
        """
        # BEGIN SOLUTION 4: both arrays stay the same arrays, with other numbers
        buffer = state["buffer"]
        buffer *= hyper["momentum"]
        buffer += grad
        value -= hyper["lr"] * buffer
        # END SOLUTION


def adam(p, g, m, v, t, lr=0.001, beta1=0.9, beta2=0.999, eps=1e-8):
    """Step 5: the new (p, m, v) after step t = 1, 2, ...; the arrays that are given stay."""
    # BEGIN SOLUTION 5: means that began at 0 are too small, until they are corrected
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g**2
    m_hat, v_hat = m / (1 - beta1**t), v / (1 - beta2**t)
    return p - lr * m_hat / (np.sqrt(v_hat) + eps), m, v
    # END SOLUTION


def adadelta(p, g, eg, ed, rho=0.9, eps=1e-6):
    """Step 6: the new (p, eg, ed); eg and ed are running means of g^2 and of d^2."""
    # BEGIN SOLUTION 6: eg first, then the step d, then ed
    eg = rho * eg + (1 - rho) * g**2
    d = np.sqrt(ed + eps) / np.sqrt(eg + eps) * g
    ed = rho * ed + (1 - rho) * d**2
    return p - d, eg, ed
    # END SOLUTION
