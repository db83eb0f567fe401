"""Every op, one file each; a kernel of the same stem lies in cuda/kernels/.  One export line an op.

The order is that of a first reading: arithmetic, sums, shapes, then what networks are made of.
"""

from tinygraph.ops.arithmetic import add, div, maximum, minimum, mul, pow, sub
from tinygraph.ops.avg_pool2d import avg_pool2d
from tinygraph.ops.batch_norm import batch_norm
from tinygraph.ops.binary_cross_entropy import binary_cross_entropy
from tinygraph.ops.binary_cross_entropy_with_logits import binary_cross_entropy_with_logits
from tinygraph.ops.cast import astype
from tinygraph.ops.clip import clip
from tinygraph.ops.comparison import equal, greater, greater_equal, less, less_equal, not_equal
from tinygraph.ops.concatenate import concatenate, split, stack
from tinygraph.ops.conv2d import conv2d
from tinygraph.ops.conv2d_relu_max_pool2d import conv2d_relu_max_pool2d
from tinygraph.ops.cumsum import cumsum
from tinygraph.ops.dropout import dropout
from tinygraph.ops.elementwise import abs, exp, log, neg, sqrt
from tinygraph.ops.elu import elu
from tinygraph.ops.embedding import embedding
from tinygraph.ops.expand import expand
from tinygraph.ops.gather import gather
from tinygraph.ops.gelu import gelu
from tinygraph.ops.getitem import getitem
from tinygraph.ops.global_avg_pool2d import global_avg_pool2d
from tinygraph.ops.half_squared_error import half_squared_error
from tinygraph.ops.heaviside import heaviside
from tinygraph.ops.huber_loss import huber_loss
from tinygraph.ops.im2col import col2im, im2col
from tinygraph.ops.l1_loss import l1_loss
from tinygraph.ops.layer_norm import layer_norm
from tinygraph.ops.leaky_relu import leaky_relu
from tinygraph.ops.linear import linear
from tinygraph.ops.logsumexp import logsumexp
from tinygraph.ops.matmul import matmul
from tinygraph.ops.max import max, min
from tinygraph.ops.max_pool2d import max_pool2d
from tinygraph.ops.mean import mean
from tinygraph.ops.methods import fill_methods
from tinygraph.ops.mse_loss import mse_loss
from tinygraph.ops.nll_loss import nll_loss
from tinygraph.ops.pad import pad
from tinygraph.ops.relu import relu
from tinygraph.ops.reshape import flatten, reshape, squeeze, unsqueeze
from tinygraph.ops.sigmoid import sigmoid
from tinygraph.ops.softmax import log_softmax, softmax
from tinygraph.ops.softmax_cross_entropy import softmax_cross_entropy
from tinygraph.ops.softplus import softplus
from tinygraph.ops.sum import sum
from tinygraph.ops.tanh import tanh
from tinygraph.ops.transpose import transpose
from tinygraph.ops.var import var
from tinygraph.ops.where import where

fill_methods()

__all__ = [
    "abs",
    "add",
    "astype",
    "avg_pool2d",
    "batch_norm",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "clip",
    "col2im",
    "concatenate",
    "conv2d",
    "conv2d_relu_max_pool2d",
    "cumsum",
    "div",
    "dropout",
    "elu",
    "embedding",
    "equal",
    "exp",
    "expand",
    "flatten",
    "gather",
    "gelu",
    "getitem",
    "global_avg_pool2d",
    "greater",
    "greater_equal",
    "half_squared_error",
    "heaviside",
    "huber_loss",
    "im2col",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "less",
    "less_equal",
    "linear",
    "log",
    "log_softmax",
    "logsumexp",
    "matmul",
    "max",
    "max_pool2d",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mse_loss",
    "mul",
    "neg",
    "nll_loss",
    "not_equal",
    "pad",
    "pow",
    "relu",
    "reshape",
    "sigmoid",
    "softmax",
    "softmax_cross_entropy",
    "softplus",
    "split",
    "sqrt",
    "squeeze",
    "stack",
    "sub",
    "sum",
    "tanh",
    "transpose",
    "unsqueeze",
    "var",
    "where",
]
