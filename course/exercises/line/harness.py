"""What the network asks for: a layer of the learner's lines, each of which takes a step.

It stands behind the learner's file.
"""

import numpy as tg_np


def tg_layer(weights, x, targets, part):
    """Weights (K, F+1) of K lines after a step on x (N, F) and targets (N, K).

    The learning rate is a part of the largest one.
    """
    lr = part * lr_limit(x)
    return tg_np.stack([descend(x, y, w, lr, 1) for y, w in zip(targets.T, weights, strict=True)])
