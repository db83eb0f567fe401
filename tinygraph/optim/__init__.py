"""Optimisers, under PyTorch's names.  Each is one class with an `update`: read optimizer.py.

A new one is a file of its own, with one line here.
"""

from tinygraph.optim.adadelta import Adadelta
from tinygraph.optim.adagrad import Adagrad
from tinygraph.optim.adam import Adam
from tinygraph.optim.adamw import AdamW
from tinygraph.optim.clipping import clip_grad_norm, clip_grad_value
from tinygraph.optim.optimizer import Optimizer
from tinygraph.optim.rmsprop import RMSprop
from tinygraph.optim.schedules import (
    CosineAnnealingLR,
    LinearWarmup,
    ReduceLROnPlateau,
    Schedule,
    StepLR,
)
from tinygraph.optim.sgd import SGD
from tinygraph.optim.srcnn_sgd import SrcnnSGD

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "CosineAnnealingLR",
    "LinearWarmup",
    "Optimizer",
    "RMSprop",
    "ReduceLROnPlateau",
    "Schedule",
    "SrcnnSGD",
    "StepLR",
    "clip_grad_norm",
    "clip_grad_value",
]
