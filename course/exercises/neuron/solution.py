"""Exercise 1: one neuron with a step, and the rule by which it learns.

    N F      samples, and inputs of each
    w        (F+1,): w[0] is the bias, w[1:] has a weight for each input
    y        0 or 1 for each sample: shall the neuron fire?  x, w, y and eta are floats

    o  = 1 where w[0] + sum of w[1 + f] * x[f] >= 0, otherwise 0
    w[0]     += eta * (y - o)                  after each sample, in their order
    w[1 + f] += eta * (y - o) * x[f]

The check takes whole numbers, halves and quarters, so that a sum of 0 is 0 and nothing is rounded.
"""

import numpy as np


def respond(x, w):
    """Step 1: o for one sample x (F,): the number 1 where the neuron fires, otherwise 0."""
    # BEGIN SOLUTION 1: bias and weighted inputs are added up; at 0 it fires
    return int(w[0] + w[1:] @ x >= 0)
    # END SOLUTION


def update(w, x, y, eta):
    """Step 2: the weights (F+1,) after the neuron has seen one sample x (F,) with its y.

    The caller's w stays as it is.
    """
    # BEGIN SOLUTION 2: by how much is the response wrong?
    error = y - respond(x, w)  # 0 where it is right, otherwise 1 or -1
    new = w.copy()
    new[0] += eta * error
    new[1:] += eta * error * x
    return new
    # END SOLUTION


def learn(x, y, eta, epochs):
    """Step 3: (w, mistakes) after learning x (N, F) with y (N,), from weights of 0.

    An epoch takes all samples in their order, each with the weights that the one before has left.
    `mistakes` is a list: how many samples of each epoch were responded to wrongly when it was
    their turn.  An epoch without any is the last one; so is number `epochs`, if there is none.
    """
    # BEGIN SOLUTION 3: count a mistake before its update
    w = np.zeros(x.shape[1] + 1)
    mistakes = []
    for _ in range(epochs):
        wrong = 0
        for sample, label in zip(x, y, strict=True):
            wrong += int(respond(sample, w) != label)
            w = update(w, sample, label, eta)
        mistakes.append(wrong)
        if wrong == 0:
            break
    return w, mistakes
    # END SOLUTION


def repeats(history):
    """Step 4: where weights come back: (i, j) with i < j and history[i] the same as history[j].

    history (E+1, F+1): the weights before the first epoch, and after each epoch, all of which had
    mistakes.  j is the first row that was there before; None where no weights come twice.
    """
    # BEGIN SOLUTION 4: compare each row with all rows before it
    for j in range(len(history)):
        for i in range(j):
            if np.array_equal(history[i], history[j]):
                return i, j
    return None
    # END SOLUTION
