"""Every op, one file each; a kernel of the same stem lies in cuda/.  One export line an op.

The order is that of a first reading: arithmetic, sums, shapes, then what networks are made of.
"""

from tinygraph.ops.conv2d import conv2d
from tinygraph.ops.im2col import col2im, im2col
from tinygraph.ops.linear import linear
from tinygraph.ops.max_pool2d import max_pool2d
from tinygraph.ops.methods import fill_methods
from tinygraph.ops.mse_loss import mse_loss
from tinygraph.ops.relu import relu
from tinygraph.ops.softmax import log_softmax, softmax
from tinygraph.ops.softmax_cross_entropy import softmax_cross_entropy

fill_methods()

__all__ = [
    "col2im", "conv2d", "im2col", "linear", "log_softmax", "max_pool2d", "mse_loss", "relu",
    "softmax", "softmax_cross_entropy",
]  # fmt: skip
