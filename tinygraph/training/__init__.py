"""Training: epochs, metrics, and the folder that a run leaves behind.  Read trainer.py first."""

from tinygraph.training.checkpoint import load_arrays, save_arrays
from tinygraph.training.environment import environment
from tinygraph.training.metrics import accuracy
from tinygraph.training.progress import Progress
from tinygraph.training.run import RunFolder
from tinygraph.training.trainer import DivergenceError, Trainer, evaluate

__all__ = [
    "DivergenceError", "Progress", "RunFolder", "Trainer", "accuracy", "environment", "evaluate",
    "load_arrays", "save_arrays",
]  # fmt: skip
