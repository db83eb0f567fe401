"""What the network asks for: a layer of the learner's neurons, each of which learns by `update`.

It stands behind the learner's file.
"""

import numpy as tg_np


def tg_layer(weights, x, labels, eta):
    """Weights (K, F+1) of K neurons after samples x (N, F); neuron k shall fire at label k."""
    weights = list(weights)
    for sample, label in zip(x, labels, strict=True):
        for k in range(len(weights)):
            weights[k] = update(weights[k], sample, float(label == k), eta)
    return tg_np.stack(weights)
