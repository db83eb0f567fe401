"""Training: epochs, metrics, and the folder that a run leaves behind.  Read trainer.py first."""

from tinygraph.errors import DivergenceError
from tinygraph.sealed import load_arrays, save_arrays
from tinygraph.training.checkpoints import CheckpointWarning
from tinygraph.training.environment import environment
from tinygraph.training.evaluation import evaluate
from tinygraph.training.log import Log
from tinygraph.training.metrics import accuracy
from tinygraph.training.profile import Profile, first_batch_step, profile_steps
from tinygraph.training.progress import Progress
from tinygraph.training.run import RunFolder
from tinygraph.training.run_lock import RunLockWarning
from tinygraph.training.stopping import Stopped, parse_duration
from tinygraph.training.tensorboard import TensorBoard
from tinygraph.training.trainer import Trainer

__all__ = [
    "CheckpointWarning",
    "DivergenceError",
    "Log",
    "Profile",
    "Progress",
    "RunFolder",
    "RunLockWarning",
    "Stopped",
    "TensorBoard",
    "Trainer",
    "accuracy",
    "environment",
    "evaluate",
    "first_batch_step",
    "load_arrays",
    "parse_duration",
    "profile_steps",
    "save_arrays",
]
