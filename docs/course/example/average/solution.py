"""Exercise 21: a running average, as optimizers keep of their gradients.

m[t] = beta * m[t-1] + (1 - beta) * x[t],  m before the first value is 0
"""

import numpy as np


def follow(x, beta):
    """Step 1: the average after each of the values x (N); an array (N)."""
    # BEGIN SOLUTION 1: what is kept of the average, and what comes in?
    m, averages = 0.0, np.zeros_like(x)
    for t, value in enumerate(x):
        m = beta * m + (1 - beta) * value
        averages[t] = m
    return averages
    # END SOLUTION


def weights(n, beta):
    """Step 2: how much each of n values counts in the last average; an array (n), oldest first."""
    # BEGIN SOLUTION 2: by what was a value multiplied since it came in?
    return (1 - beta) * beta ** np.arange(n - 1, -1, -1.0)
    # END SOLUTION


def corrected(x, beta):
    """Step 3: the average after each value, divided by the sum of its weights; an array (N)."""
    # BEGIN SOLUTION 3: what do the weights of t values add up to?
    return follow(x, beta) / (1 - beta ** np.arange(1.0, len(x) + 1))
    # END SOLUTION
