"""Optimisers, under PyTorch's names.  Each is one class with an `update`: read optimizer.py.

A new one is a file of its own, with one line here.
"""

from tinygraph.optim.optimizer import Optimizer
from tinygraph.optim.sgd import SGD

__all__ = ["SGD", "Optimizer"]
