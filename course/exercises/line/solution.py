"""Exercise 2: a line through samples, by descent and in one step.

    N F      samples, and inputs of each
    x y      (N, F) and (N,): y is any number, no class
    w        (F+1,): w[0] is the bias, w[1:] has a weight for each input

    p[n]        = w[0] + sum of w[1 + f] * x[n, f]
    L           = sum of (p[n] - y[n])**2 / 2               over n
    dL/dw[0]    = sum of p[n] - y[n]
    dL/dw[1+f]  = sum of (p[n] - y[n]) * x[n, f]

With A (N, F+1), a column of ones and then x, this is p = A w and dL/dw = A^T (A w - y).
"""

import numpy as np


def predict(x, w):
    """Step 1: p (N,) for the samples x (N, F)."""
    # BEGIN SOLUTION 1: one product for all samples; the bias is added to each of them
    return w[0] + x @ w[1:]
    # END SOLUTION


def loss(x, y, w):
    """Step 2: L, a number: half the squared errors, added up."""
    # BEGIN SOLUTION 2: which shape has the difference?
    return np.sum((predict(x, w) - y) ** 2) / 2
    # END SOLUTION


def gradient(x, y, w):
    """Step 3: dL/dw (F+1,), that of the bias first."""
    # BEGIN SOLUTION 3: each error counts for an input as much as that input was
    error = predict(x, w) - y  # (N,)
    return np.concatenate([[error.sum()], error @ x])
    # END SOLUTION


def descend(x, y, w, lr, steps):
    """Step 4: the weights (F+1,) after some steps from w, each by lr down the gradient.

    The caller's w stays as it is.
    """
    # BEGIN SOLUTION 4: after each step the gradient is another one
    for _ in range(steps):
        w = w - lr * gradient(x, y, w)
    return w
    # END SOLUTION


def closed_form(x, y):
    """Step 5: the weights (F+1,) of the least loss, without steps; of several the shortest."""
    # BEGIN SOLUTION 5: A has a column of ones; numpy solves least squares
    A = np.column_stack([np.ones(len(x)), x])  # (N, F+1)
    return np.linalg.lstsq(A, y, rcond=None)[0]
    # END SOLUTION


def lr_limit(x):
    """Step 6: a number, 2 / largest eigenvalue of A^T A: there descent begins to fail."""
    # BEGIN SOLUTION 6: A^T A is symmetric: np.linalg.eigvalsh
    columns = np.column_stack([np.ones(len(x)), x])  # (N, F+1)
    return 2 / np.linalg.eigvalsh(columns.T @ columns).max()
    # END SOLUTION
