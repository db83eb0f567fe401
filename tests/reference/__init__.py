"""What the ops compute, in naive loops over Python numbers.  Nothing here calls tinygraph."""

from tests.reference.activations import *  # noqa: F403
from tests.reference.basics import *  # noqa: F403
from tests.reference.fused import *  # noqa: F403
from tests.reference.normalization import *  # noqa: F403
from tests.reference.shaping import *  # noqa: F403
