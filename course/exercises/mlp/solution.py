"""Exercise 3: a network of two layers, and one step of the delta rule by hand.

    N I H O   samples, inputs, hidden units and outputs
    W1 b1     (H, I) and (H,): a row of weights and a bias for each hidden unit
    W2 b2     (O, H) and (O,): the same for each output

    h  = s(x @ W1.T + b1)                        s(z) = 1 / (1 + exp(-z)), and s' = s * (1 - s)
    o  = s(h @ W2.T + b2)
    L  = half the sum of (o - y)**2, over all outputs of all samples
    d2 = dL / d(what the outputs added up)       and d1 for the hidden units
"""

import numpy as np


def sigmoid(z):
    """Given: s, for each number of an array."""
    return 1 / (1 + np.exp(-z))


def forward(x, W1, b1, W2, b2):
    """Step 1: (h, o), arrays (N, H) and (N, O), for samples x (N, I)."""
    # BEGIN SOLUTION 1: weights lie as (out, in); h is what the second layer sees
    h = sigmoid(x @ W1.T + b1)
    o = sigmoid(h @ W2.T + b2)
    return h, o
    # END SOLUTION


def deltas(h, o, y, W2):
    """Step 2: (d1, d2), arrays (N, H) and (N, O).

    They are the derivatives of L with respect to the sums inside the two sigmoids.
    """
    # BEGIN SOLUTION 2: h and o are values of s already; d1 comes from d2
    d2 = (o - y) * o * (1 - o)
    d1 = (d2 @ W2) * h * (1 - h)
    return d1, d2
    # END SOLUTION


def gradients(x, h, d1, d2):
    """Step 3: (gW1, gb1, gW2, gb2), the derivatives of L with respect to the parameters.

    They have the shapes of W1, b1, W2, b2.
    """
    # BEGIN SOLUTION 3: the delta above a weight times the value below it, added up over samples
    return d1.T @ x, d1.sum(axis=0), d2.T @ h, d2.sum(axis=0)
    # END SOLUTION


def step(x, y, W1, b1, W2, b2, lr):
    """Step 4: the new (W1, b1, W2, b2), after one step of size lr downhill.

    The caller's arrays stay as they are.
    """
    # BEGIN SOLUTION 4: all gradients first, from the old parameters
    h, o = forward(x, W1, b1, W2, b2)
    d1, d2 = deltas(h, o, y, W2)
    gW1, gb1, gW2, gb2 = gradients(x, h, d1, d2)
    return W1 - lr * gW1, b1 - lr * gb1, W2 - lr * gW2, b2 - lr * gb2
    # END SOLUTION
