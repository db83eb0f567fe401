"""The schedules, in the place where PyTorch has them."""

from typing import TYPE_CHECKING

from tinygraph.base.lazy import lazy as _lazy
from tinygraph.optim.chains import LinearWarmup as LinearWarmup
from tinygraph.optim.chains import SequentialLR as SequentialLR
from tinygraph.optim.decays import ConstantLR as ConstantLR
from tinygraph.optim.decays import ExponentialLR as ExponentialLR
from tinygraph.optim.decays import LambdaLR as LambdaLR
from tinygraph.optim.decays import LinearLR as LinearLR
from tinygraph.optim.decays import MultiStepLR as MultiStepLR
from tinygraph.optim.decays import PolynomialLR as PolynomialLR
from tinygraph.optim.one_cycle import OneCycleLR as OneCycleLR
from tinygraph.optim.schedules import CosineAnnealingLR as CosineAnnealingLR
from tinygraph.optim.schedules import ReduceLROnPlateau as ReduceLROnPlateau
from tinygraph.optim.schedules import Schedule as Schedule
from tinygraph.optim.schedules import StepLR as StepLR

if not TYPE_CHECKING:
    __getattr__, __dir__ = _lazy(__name__, {}, "optim.lr_scheduler")
