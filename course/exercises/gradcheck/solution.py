"""Exercise 5: is a backward the derivative of its forward?

    op.forward(*arrays)            y, an array
    op.backward(gy, *arrays)       a gradient for each of the arrays

    L          = sum of gy * y                                     a number
    dL/dx[i]  ~= (L at x[i] + h  -  L at x[i] - h) / (2 h)         numeric: h is small
    dL/dx[i]   = what op.backward gives for x, at [i]              analytic
"""

import numpy as np
from hypothesis import strategies as st


def slope(f, x, h):
    """Step 1: how fast f rises at the number x, seen from x - h and x + h."""
    # BEGIN SOLUTION 1: the height between the two, by the way between the two
    return (f(x + h) - f(x - h)) / (2 * h)
    # END SOLUTION


def numeric(op, arrays, upstream):
    """Step 2: a list with the gradient of L for each of the arrays, by slopes, without backward.

    Gradients are float64, also where an array is float32.  The caller's arrays stay as they are.
    """
    # BEGIN SOLUTION 2: one element after the other; all the others stay where they were
    arrays = [np.array(a, np.float64) for a in arrays]
    gradients = [np.zeros(a.shape) for a in arrays]
    for a, gradient in zip(arrays, gradients, strict=True):
        for i in np.ndindex(a.shape):
            x = a[i]

            def loss(value, a=a, i=i):
                a[i] = value
                return np.sum(upstream * op.forward(*arrays))

            gradient[i] = slope(loss, x, 1e-6)
            a[i] = x
    return gradients
    # END SOLUTION


def worst(op, arrays):
    """Step 3: how far the analytic gradient is from the numeric one, at the worst element of all.

    For each array the largest |analytic - numeric|, divided by the largest |numeric| where that is
    above 1.  Below 1e-4 for a right backward.  Infinity where a gradient has not the shape of its
    array, NaN where it has a NaN.
    """
    # BEGIN SOLUTION 3: which upstream leaves nothing unseen?
    upstream = np.random.default_rng(0).standard_normal(op.forward(*arrays).shape)
    expected = numeric(op, arrays, upstream)
    largest = 0.0
    for given, right in zip(op.backward(upstream, *arrays), expected, strict=True):
        if given.shape != right.shape:
            return np.inf
        far = np.abs(given - right).max() / max(1.0, np.abs(right).max())
        largest = np.maximum(largest, far)
    return float(largest)
    # END SOLUTION


def problems():
    """Step 4: a hypothesis strategy of problems for layers: tuples (x, w, b) of float64 arrays.

    x (N, I), w (O, I), b (O,): N samples of I inputs, O outputs.  Whatever a backward does wrong,
    one of 30 problems shows it; where a forward has a kink, such as ReLU at 0, no problem lies.
    """
    # BEGIN SOLUTION 4: which sizes, and which numbers, would hide something?
    size = st.integers(1, 4)

    @st.composite
    def problem(draw):
        samples, inputs, outputs = draw(size), draw(size), draw(size)
        numbers = np.random.default_rng(draw(st.integers(0, 999))).standard_normal
        return numbers((samples, inputs)), numbers((outputs, inputs)), numbers(outputs)

    return problem()
    # END SOLUTION


def agrees(op, problem):
    """Step 5: True where the backward is right on a problem: worst is below 1e-4, and it changes
    none of the arrays that it is given, the upstream among them."""
    # BEGIN SOLUTION 5: call backward once with copies of which you know what was in them
    upstream = np.ones(op.forward(*problem).shape)
    given = [a.copy() for a in (upstream, *problem)]
    op.backward(*given)
    changed = any((a != b).any() for a, b in zip(given, (upstream, *problem), strict=True))
    return not changed and worst(op, problem) < 1e-4
    # END SOLUTION
