"""Optimisers, under PyTorch's names.  Each is one class with an `update`: read optimizer.py.

A new one is a file of its own, with one line here.
"""

from typing import TYPE_CHECKING

from tinygraph.base.lazy import lazy as _lazy
from tinygraph.optim import lr_scheduler as lr_scheduler
from tinygraph.optim.adadelta import Adadelta as Adadelta
from tinygraph.optim.adagrad import Adagrad as Adagrad
from tinygraph.optim.adam import Adam as Adam
from tinygraph.optim.adamw import AdamW as AdamW
from tinygraph.optim.clipping import clip_grad_norm as clip_grad_norm
from tinygraph.optim.clipping import clip_grad_value as clip_grad_value
from tinygraph.optim.lion import Lion as Lion
from tinygraph.optim.lr_scheduler import ConstantLR as ConstantLR
from tinygraph.optim.lr_scheduler import CosineAnnealingLR as CosineAnnealingLR
from tinygraph.optim.lr_scheduler import ExponentialLR as ExponentialLR
from tinygraph.optim.lr_scheduler import LambdaLR as LambdaLR
from tinygraph.optim.lr_scheduler import LinearLR as LinearLR
from tinygraph.optim.lr_scheduler import LinearWarmup as LinearWarmup
from tinygraph.optim.lr_scheduler import MultiStepLR as MultiStepLR
from tinygraph.optim.lr_scheduler import OneCycleLR as OneCycleLR
from tinygraph.optim.lr_scheduler import PolynomialLR as PolynomialLR
from tinygraph.optim.lr_scheduler import ReduceLROnPlateau as ReduceLROnPlateau
from tinygraph.optim.lr_scheduler import Schedule as Schedule
from tinygraph.optim.lr_scheduler import SequentialLR as SequentialLR
from tinygraph.optim.lr_scheduler import StepLR as StepLR
from tinygraph.optim.optimizer import Optimizer as Optimizer
from tinygraph.optim.rmsprop import RMSprop as RMSprop
from tinygraph.optim.sgd import SGD as SGD

__plan__ = "optim"  # see plan/declared.py

if not TYPE_CHECKING:
    __getattr__, __dir__ = _lazy(__name__, {}, "optim")
