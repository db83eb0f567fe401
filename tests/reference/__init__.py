"""What the ops compute, in naive loops over Python numbers.  Nothing here calls tinygraph."""

from tests.reference.activations import *  # noqa: F403
from tests.reference.basics import *  # noqa: F403
from tests.reference.fused import *  # noqa: F403
from tests.reference.images import *  # noqa: F403
from tests.reference.normalization import *  # noqa: F403
from tests.reference.recurrent import gru_layer as gru_layer
from tests.reference.recurrent import lstm_layer as lstm_layer
from tests.reference.recurrent import rnn_layer as rnn_layer
from tests.reference.shaping import *  # noqa: F403
