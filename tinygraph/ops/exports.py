"""One line for each public function of ops.  A name here is one of tinygraph, with its file.

Type checkers and editors read these lines.  When tinygraph runs, they only tell where a function
lies: its file is loaded when it is first used (ops/__init__.py).  Tensor has as methods what
operators.py declares by these names.
"""

from tinygraph.ops.common import astype as astype
from tinygraph.ops.common import clone as clone
from tinygraph.ops.elementwise.arithmetic import add as add
from tinygraph.ops.elementwise.arithmetic import div as div
from tinygraph.ops.elementwise.arithmetic import maximum as maximum
from tinygraph.ops.elementwise.arithmetic import minimum as minimum
from tinygraph.ops.elementwise.arithmetic import mul as mul
from tinygraph.ops.elementwise.arithmetic import pow as pow
from tinygraph.ops.elementwise.arithmetic import sub as sub
from tinygraph.ops.elementwise.clip import clip as clip
from tinygraph.ops.elementwise.comparison import equal as equal
from tinygraph.ops.elementwise.comparison import greater as greater
from tinygraph.ops.elementwise.comparison import greater_equal as greater_equal
from tinygraph.ops.elementwise.comparison import less as less
from tinygraph.ops.elementwise.comparison import less_equal as less_equal
from tinygraph.ops.elementwise.comparison import not_equal as not_equal
from tinygraph.ops.elementwise.dropout import dropout as dropout
from tinygraph.ops.elementwise.elementwise import abs as abs
from tinygraph.ops.elementwise.elementwise import cos as cos
from tinygraph.ops.elementwise.elementwise import exp as exp
from tinygraph.ops.elementwise.elementwise import expm1 as expm1
from tinygraph.ops.elementwise.elementwise import log as log
from tinygraph.ops.elementwise.elementwise import log1p as log1p
from tinygraph.ops.elementwise.elementwise import log2 as log2
from tinygraph.ops.elementwise.elementwise import neg as neg
from tinygraph.ops.elementwise.elementwise import reciprocal as reciprocal
from tinygraph.ops.elementwise.elementwise import rsqrt as rsqrt
from tinygraph.ops.elementwise.elementwise import sin as sin
from tinygraph.ops.elementwise.elementwise import sqrt as sqrt
from tinygraph.ops.elementwise.elementwise import square as square
from tinygraph.ops.elementwise.elu import celu as celu
from tinygraph.ops.elementwise.elu import elu as elu
from tinygraph.ops.elementwise.elu import selu as selu
from tinygraph.ops.elementwise.erf import erf as erf
from tinygraph.ops.elementwise.finite import isfinite as isfinite
from tinygraph.ops.elementwise.finite import isinf as isinf
from tinygraph.ops.elementwise.finite import isnan as isnan
from tinygraph.ops.elementwise.floor_divide import floor_divide as floor_divide
from tinygraph.ops.elementwise.floor_divide import remainder as remainder
from tinygraph.ops.elementwise.gelu import gelu as gelu
from tinygraph.ops.elementwise.glu import glu as glu
from tinygraph.ops.elementwise.hard_activations import hardsigmoid as hardsigmoid
from tinygraph.ops.elementwise.hard_activations import hardswish as hardswish
from tinygraph.ops.elementwise.hard_activations import hardtanh as hardtanh
from tinygraph.ops.elementwise.hard_activations import relu6 as relu6
from tinygraph.ops.elementwise.heaviside import heaviside as heaviside
from tinygraph.ops.elementwise.leaky_relu import leaky_relu as leaky_relu
from tinygraph.ops.elementwise.logic import bitwise_and as bitwise_and
from tinygraph.ops.elementwise.logic import bitwise_not as bitwise_not
from tinygraph.ops.elementwise.logic import bitwise_or as bitwise_or
from tinygraph.ops.elementwise.logic import bitwise_xor as bitwise_xor
from tinygraph.ops.elementwise.logic import logical_and as logical_and
from tinygraph.ops.elementwise.logic import logical_not as logical_not
from tinygraph.ops.elementwise.logic import logical_or as logical_or
from tinygraph.ops.elementwise.logic import logical_xor as logical_xor
from tinygraph.ops.elementwise.masks import masked_fill as masked_fill
from tinygraph.ops.elementwise.masks import tril as tril
from tinygraph.ops.elementwise.masks import triu as triu
from tinygraph.ops.elementwise.prelu import prelu as prelu
from tinygraph.ops.elementwise.relu import relu as relu
from tinygraph.ops.elementwise.rounding import ceil as ceil
from tinygraph.ops.elementwise.rounding import floor as floor
from tinygraph.ops.elementwise.rounding import round as round
from tinygraph.ops.elementwise.rounding import sign as sign
from tinygraph.ops.elementwise.rounding import trunc as trunc
from tinygraph.ops.elementwise.sigmoid import sigmoid as sigmoid
from tinygraph.ops.elementwise.smooth_activations import logsigmoid as logsigmoid
from tinygraph.ops.elementwise.smooth_activations import mish as mish
from tinygraph.ops.elementwise.smooth_activations import silu as silu
from tinygraph.ops.elementwise.smooth_activations import softsign as softsign
from tinygraph.ops.elementwise.softplus import softplus as softplus
from tinygraph.ops.elementwise.tanh import tanh as tanh
from tinygraph.ops.elementwise.where import where as where
from tinygraph.ops.losses.binary_cross_entropy import binary_cross_entropy as binary_cross_entropy
from tinygraph.ops.losses.binary_cross_entropy_with_logits import (
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
)
from tinygraph.ops.losses.cross_entropy import cross_entropy as cross_entropy
from tinygraph.ops.losses.half_squared_error import half_squared_error as half_squared_error
from tinygraph.ops.losses.huber_loss import huber_loss as huber_loss
from tinygraph.ops.losses.huber_loss import smooth_l1_loss as smooth_l1_loss
from tinygraph.ops.losses.kl_div import kl_div as kl_div
from tinygraph.ops.losses.l1_loss import l1_loss as l1_loss
from tinygraph.ops.losses.mse_loss import mse_loss as mse_loss
from tinygraph.ops.losses.nll_loss import nll_loss as nll_loss
from tinygraph.ops.losses.softmax_cross_entropy import (
    softmax_cross_entropy as softmax_cross_entropy,
)
from tinygraph.ops.normalization.batch_norm import batch_norm as batch_norm
from tinygraph.ops.normalization.group_norm import group_norm as group_norm
from tinygraph.ops.normalization.group_norm import instance_norm as instance_norm
from tinygraph.ops.normalization.layer_norm import layer_norm as layer_norm
from tinygraph.ops.normalization.rms_norm import rms_norm as rms_norm
from tinygraph.ops.products.attention import (
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from tinygraph.ops.products.cosine_similarity import cosine_similarity as cosine_similarity
from tinygraph.ops.products.einsum import einsum as einsum
from tinygraph.ops.products.linear import linear as linear
from tinygraph.ops.products.matmul import matmul as matmul
from tinygraph.ops.products.products import bmm as bmm
from tinygraph.ops.products.products import dot as dot
from tinygraph.ops.products.products import mm as mm
from tinygraph.ops.products.products import mv as mv
from tinygraph.ops.products.products import outer as outer
from tinygraph.ops.recurrent.gru_layer import gru_layer as gru_layer
from tinygraph.ops.recurrent.lstm_layer import lstm_layer as lstm_layer
from tinygraph.ops.recurrent.rnn_layer import rnn_layer as rnn_layer
from tinygraph.ops.reductions.count_nonzero import all as all
from tinygraph.ops.reductions.count_nonzero import any as any
from tinygraph.ops.reductions.count_nonzero import count_nonzero as count_nonzero
from tinygraph.ops.reductions.cumsum import cumsum as cumsum
from tinygraph.ops.reductions.logsumexp import logsumexp as logsumexp
from tinygraph.ops.reductions.max import amax as amax
from tinygraph.ops.reductions.max import amin as amin
from tinygraph.ops.reductions.max import argmax as argmax
from tinygraph.ops.reductions.max import argmin as argmin
from tinygraph.ops.reductions.max import max as max
from tinygraph.ops.reductions.max import min as min
from tinygraph.ops.reductions.mean import mean as mean
from tinygraph.ops.reductions.norm import norm as norm
from tinygraph.ops.reductions.prod import prod as prod
from tinygraph.ops.reductions.softmax import log_softmax as log_softmax
from tinygraph.ops.reductions.softmax import softmax as softmax
from tinygraph.ops.reductions.sort import argsort as argsort
from tinygraph.ops.reductions.sort import sort as sort
from tinygraph.ops.reductions.sort import topk as topk
from tinygraph.ops.reductions.sum import sum as sum
from tinygraph.ops.reductions.var import std as std
from tinygraph.ops.reductions.var import std_mean as std_mean
from tinygraph.ops.reductions.var import var as var
from tinygraph.ops.reductions.var import var_mean as var_mean
from tinygraph.ops.shaping.concatenate import concatenate as concatenate
from tinygraph.ops.shaping.concatenate import hstack as hstack
from tinygraph.ops.shaping.concatenate import stack as stack
from tinygraph.ops.shaping.concatenate import vstack as vstack
from tinygraph.ops.shaping.embedding import embedding as embedding
from tinygraph.ops.shaping.expand import expand as expand
from tinygraph.ops.shaping.gather import gather as gather
from tinygraph.ops.shaping.getitem import getitem as getitem
from tinygraph.ops.shaping.one_hot import one_hot as one_hot
from tinygraph.ops.shaping.pad import pad as pad
from tinygraph.ops.shaping.reshape import flatten as flatten
from tinygraph.ops.shaping.reshape import reshape as reshape
from tinygraph.ops.shaping.reshape import squeeze as squeeze
from tinygraph.ops.shaping.reshape import unflatten as unflatten
from tinygraph.ops.shaping.reshape import unsqueeze as unsqueeze
from tinygraph.ops.shaping.roll import flip as flip
from tinygraph.ops.shaping.roll import roll as roll
from tinygraph.ops.shaping.split import chunk as chunk
from tinygraph.ops.shaping.split import split as split
from tinygraph.ops.shaping.split import tensor_split as tensor_split
from tinygraph.ops.shaping.split import unbind as unbind
from tinygraph.ops.shaping.tile import repeat_interleave as repeat_interleave
from tinygraph.ops.shaping.tile import tile as tile
from tinygraph.ops.shaping.transpose import movedim as movedim
from tinygraph.ops.shaping.transpose import permute as permute
from tinygraph.ops.shaping.transpose import transpose as transpose
from tinygraph.ops.windows.adaptive_avg_pool2d import adaptive_avg_pool1d as adaptive_avg_pool1d
from tinygraph.ops.windows.adaptive_avg_pool2d import adaptive_avg_pool2d as adaptive_avg_pool2d
from tinygraph.ops.windows.avg_pool2d import avg_pool1d as avg_pool1d
from tinygraph.ops.windows.avg_pool2d import avg_pool2d as avg_pool2d
from tinygraph.ops.windows.conv2d import conv1d as conv1d
from tinygraph.ops.windows.conv2d import conv2d as conv2d
from tinygraph.ops.windows.conv2d_relu_max_pool2d import (
    conv2d_relu_max_pool2d as conv2d_relu_max_pool2d,
)
from tinygraph.ops.windows.conv_transpose2d import conv_transpose1d as conv_transpose1d
from tinygraph.ops.windows.conv_transpose2d import conv_transpose2d as conv_transpose2d
from tinygraph.ops.windows.global_avg_pool2d import global_avg_pool2d as global_avg_pool2d
from tinygraph.ops.windows.im2col import col2im as col2im
from tinygraph.ops.windows.im2col import im2col as im2col
from tinygraph.ops.windows.interpolate import interpolate as interpolate
from tinygraph.ops.windows.max_pool2d import max_pool1d as max_pool1d
from tinygraph.ops.windows.max_pool2d import max_pool2d as max_pool2d

# The same functions under the other names that PyTorch and numpy have for them.
cat = concat = concatenate
absolute, negative = abs, neg
multiply, subtract = mul, sub
divide = true_divide = div
clamp = clip
eq, ne = equal, not_equal
swapaxes = swapdims = transpose
moveaxis = movedim
gt, ge, lt, le = greater, greater_equal, less, less_equal
