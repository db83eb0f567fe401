"""Optimisers, under PyTorch's names.  Each is one class with an `update`: read optimizer.py.

A new one is a file of its own, with one line here.
"""

from tinygraph.optim.adadelta import Adadelta as Adadelta
from tinygraph.optim.adagrad import Adagrad as Adagrad
from tinygraph.optim.adam import Adam as Adam
from tinygraph.optim.adamw import AdamW as AdamW
from tinygraph.optim.clipping import clip_grad_norm as clip_grad_norm
from tinygraph.optim.clipping import clip_grad_value as clip_grad_value
from tinygraph.optim.optimizer import Optimizer as Optimizer
from tinygraph.optim.rmsprop import RMSprop as RMSprop
from tinygraph.optim.schedules import CosineAnnealingLR as CosineAnnealingLR
from tinygraph.optim.schedules import LinearWarmup as LinearWarmup
from tinygraph.optim.schedules import ReduceLROnPlateau as ReduceLROnPlateau
from tinygraph.optim.schedules import Schedule as Schedule
from tinygraph.optim.schedules import StepLR as StepLR
from tinygraph.optim.sgd import SGD as SGD
