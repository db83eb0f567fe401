"""Exercise 6: softmax, a loss that does not overflow, and the training of a network.

    N C   samples and classes       z (N, C) logits: any floats        labels (N,) int64, 0 to C - 1

    p[n, c]     = exp(z[n, c]) / sum over k of exp(z[n, k])
    loss        = mean over n of -log p[n, labels[n]]
    dloss/dz    = (p - onehot(labels)) / N
"""

from dataclasses import dataclass

import numpy as np

import tinygraph as tg


def log_softmax(z):
    """Step 1: log p (N, C), for logits of any size: 1000 as well as -1000."""
    # BEGIN SOLUTION 1: what may be taken off all logits of a sample, and nothing changes?
    shifted = z - z.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    # END SOLUTION


def cross_entropy(z, labels):
    """Step 2: the loss, one number: the mean over the samples of -log p of the right class."""
    # BEGIN SOLUTION 2: of each row n the number in column labels[n]
    return -log_softmax(z)[np.arange(len(z)), labels].mean()
    # END SOLUTION


def gradient(z, labels):
    """Step 3: dloss/dz (N, C), where the loss is that of step 2; in the dtype of z."""
    # BEGIN SOLUTION 3: p, less 1 where the right class is; and the loss is a mean
    p = np.exp(log_softmax(z))
    p[np.arange(len(z)), labels] -= 1
    return p / len(z)
    # END SOLUTION


@dataclass(frozen=True)
class SoftmaxCrossEntropy(tg.Op):
    """Step 4: the op of the graph, for Tensors: SoftmaxCrossEntropy()(logits, labels).

    The first pair of brackets makes the op, the second one applies it.  `infer` is given.  `mem`
    gives memory, `needs` says which inputs want a gradient: both may stay unused here.
    """

    def infer(self, z, labels):
        return tg.Spec((), z.dtype)

    def forward(self, mem, z, labels):
        """The output, an array without axes (np.asarray makes one), and what backward needs."""
        # BEGIN SOLUTION 4: what do steps 2 and 3 ask for?
        return np.asarray(cross_entropy(z, labels)), (z, labels)
        # END SOLUTION

    def backward(self, mem, gy, saved, needs):
        """A tuple: the gradient of z, and None for the labels, which have none."""
        # BEGIN SOLUTION 4: the chain rule
        z, labels = saved
        return gradient(z, labels) * gy, None
        # END SOLUTION


def train(model, batches, optimizer):
    """Step 5: one epoch: a step of the optimizer for each batch, in their order.

    model(x) gives logits (N, C), a Tensor; batches is a list of pairs (x, labels).  Returns a list:
    of each batch its loss before its step, a float: loss.item().  The loss is the op of step 4.
    """
    # BEGIN SOLUTION 5: zero_grad, backward and step
    losses = []
    for x, labels in batches:
        optimizer.zero_grad()
        loss = SoftmaxCrossEntropy()(model(x), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
    # END SOLUTION


def learn(model, batches, test, optimizer, epochs):
    """Step 6: train for some epochs; then the share of test samples that the model gets right.

    test is a pair (x, labels); the share is a number from 0 to 1.  The class with the largest logit
    is what the model takes a sample for; model(x).numpy() is the array of logits.  No gradient is
    asked for here: `with tg.no_grad():` saves the work for one, but may be left out.
    """
    # BEGIN SOLUTION 6: which data does the share come from, and when?
    for _ in range(epochs):
        train(model, batches, optimizer)
    x, labels = test
    with tg.no_grad():
        logits = model(x).numpy()
    return float((logits.argmax(axis=1) == labels).mean())
    # END SOLUTION
