"""Training: epochs, metrics, and the folder that a run leaves behind.  Read trainer.py first."""

from typing import TYPE_CHECKING

from tinygraph.base import DivergenceError
from tinygraph.base.lazy import lazy
from tinygraph.files.sealed import load_arrays, save_arrays
from tinygraph.training.checkpoints import CheckpointWarning
from tinygraph.training.environment import environment
from tinygraph.training.evaluation import evaluate
from tinygraph.training.log import Log
from tinygraph.training.metrics import accuracy
from tinygraph.training.progress import Progress
from tinygraph.training.run import RunFolder
from tinygraph.training.run_lock import RunLockWarning
from tinygraph.training.stopping import Stopped, parse_duration
from tinygraph.training.trainer import Trainer

if TYPE_CHECKING:
    from tinygraph.interop.tensorboard import TensorBoard
    from tinygraph.training.profile import Profile, first_batch_step, profile_steps
else:
    _HOMES = {
        "Profile": "tinygraph.training.profile",
        "TensorBoard": "tinygraph.interop.tensorboard",
        "first_batch_step": "tinygraph.training.profile",
        "profile_steps": "tinygraph.training.profile",
    }
    __getattr__, __dir__ = lazy(__name__, _HOMES)

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
