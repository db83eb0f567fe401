"""Layers and networks, under PyTorch's names.  A layer is one class: parameters and `forward`.

Read module.py first.  A new layer goes into the file of its family, with one line here.
"""

import sys
from typing import TYPE_CHECKING

from tinygraph.base.lazy import lazy as _lazy
from tinygraph.engine.parameter import Buffer as Buffer
from tinygraph.engine.parameter import Parameter as Parameter
from tinygraph.nn import functional as functional
from tinygraph.nn import init as init
from tinygraph.nn import vectors as vectors
from tinygraph.nn.activation import CELU as CELU
from tinygraph.nn.activation import ELU as ELU
from tinygraph.nn.activation import GELU as GELU
from tinygraph.nn.activation import GLU as GLU
from tinygraph.nn.activation import SELU as SELU
from tinygraph.nn.activation import Hardsigmoid as Hardsigmoid
from tinygraph.nn.activation import Hardswish as Hardswish
from tinygraph.nn.activation import Hardtanh as Hardtanh
from tinygraph.nn.activation import Identity as Identity
from tinygraph.nn.activation import LeakyReLU as LeakyReLU
from tinygraph.nn.activation import LogSigmoid as LogSigmoid
from tinygraph.nn.activation import LogSoftmax as LogSoftmax
from tinygraph.nn.activation import Mish as Mish
from tinygraph.nn.activation import PReLU as PReLU
from tinygraph.nn.activation import ReLU as ReLU
from tinygraph.nn.activation import ReLU6 as ReLU6
from tinygraph.nn.activation import Sigmoid as Sigmoid
from tinygraph.nn.activation import SiLU as SiLU
from tinygraph.nn.activation import Softmax as Softmax
from tinygraph.nn.activation import Softplus as Softplus
from tinygraph.nn.activation import Softsign as Softsign
from tinygraph.nn.activation import Tanh as Tanh
from tinygraph.nn.attention import MultiheadAttention as MultiheadAttention
from tinygraph.nn.batch_norm import BatchNorm1d as BatchNorm1d
from tinygraph.nn.batch_norm import BatchNorm2d as BatchNorm2d
from tinygraph.nn.containers import ModuleDict as ModuleDict
from tinygraph.nn.containers import ModuleList as ModuleList
from tinygraph.nn.containers import ParameterDict as ParameterDict
from tinygraph.nn.containers import ParameterList as ParameterList
from tinygraph.nn.containers import Residual as Residual
from tinygraph.nn.containers import Sequential as Sequential
from tinygraph.nn.conv import Conv1d as Conv1d
from tinygraph.nn.conv import Conv2d as Conv2d
from tinygraph.nn.conv import ConvTranspose1d as ConvTranspose1d
from tinygraph.nn.conv import ConvTranspose2d as ConvTranspose2d
from tinygraph.nn.distance import CosineSimilarity as CosineSimilarity
from tinygraph.nn.dropout import Dropout as Dropout
from tinygraph.nn.embedding import Embedding as Embedding
from tinygraph.nn.linear import Linear as Linear
from tinygraph.nn.loss import BCELoss as BCELoss
from tinygraph.nn.loss import BCEWithLogitsLoss as BCEWithLogitsLoss
from tinygraph.nn.loss import CrossEntropyLoss as CrossEntropyLoss
from tinygraph.nn.loss import HalfSquaredError as HalfSquaredError
from tinygraph.nn.loss import HuberLoss as HuberLoss
from tinygraph.nn.loss import KLDivLoss as KLDivLoss
from tinygraph.nn.loss import L1Loss as L1Loss
from tinygraph.nn.loss import MSELoss as MSELoss
from tinygraph.nn.loss import NLLLoss as NLLLoss
from tinygraph.nn.loss import SmoothL1Loss as SmoothL1Loss
from tinygraph.nn.module import Module as Module
from tinygraph.nn.normalization import GroupNorm as GroupNorm
from tinygraph.nn.normalization import InstanceNorm1d as InstanceNorm1d
from tinygraph.nn.normalization import InstanceNorm2d as InstanceNorm2d
from tinygraph.nn.normalization import LayerNorm as LayerNorm
from tinygraph.nn.normalization import RMSNorm as RMSNorm
from tinygraph.nn.pooling import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from tinygraph.nn.pooling import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from tinygraph.nn.pooling import AvgPool1d as AvgPool1d
from tinygraph.nn.pooling import AvgPool2d as AvgPool2d
from tinygraph.nn.pooling import GlobalAvgPool2d as GlobalAvgPool2d
from tinygraph.nn.pooling import MaxPool1d as MaxPool1d
from tinygraph.nn.pooling import MaxPool2d as MaxPool2d
from tinygraph.nn.recurrent import GRU as GRU
from tinygraph.nn.recurrent import LSTM as LSTM
from tinygraph.nn.recurrent import RNN as RNN
from tinygraph.nn.recurrent import GRUCell as GRUCell
from tinygraph.nn.recurrent import LSTMCell as LSTMCell
from tinygraph.nn.recurrent import RNNCell as RNNCell
from tinygraph.nn.resizing import CircularPad2d as CircularPad2d
from tinygraph.nn.resizing import ConstantPad2d as ConstantPad2d
from tinygraph.nn.resizing import ReflectionPad2d as ReflectionPad2d
from tinygraph.nn.resizing import ReplicationPad2d as ReplicationPad2d
from tinygraph.nn.resizing import Upsample as Upsample
from tinygraph.nn.resizing import UpsamplingBilinear2d as UpsamplingBilinear2d
from tinygraph.nn.resizing import UpsamplingNearest2d as UpsamplingNearest2d
from tinygraph.nn.resizing import ZeroPad2d as ZeroPad2d
from tinygraph.nn.shape import Flatten as Flatten
from tinygraph.nn.shape import Unflatten as Unflatten
from tinygraph.nn.transformer import TransformerDecoder as TransformerDecoder
from tinygraph.nn.transformer import TransformerDecoderLayer as TransformerDecoderLayer
from tinygraph.nn.transformer import TransformerEncoder as TransformerEncoder
from tinygraph.nn.transformer import TransformerEncoderLayer as TransformerEncoderLayer

sys.modules[f"{__name__}.utils"] = utils = vectors  # for `from tinygraph.nn.utils import ...`

__plan__ = "settings"  # see plan/declared.py

if TYPE_CHECKING:
    from tinygraph.distributed.sync_batch_norm import SyncBatchNorm as SyncBatchNorm
else:
    _HOMES = {"SyncBatchNorm": "tinygraph.distributed.sync_batch_norm"}
    __getattr__, __dir__ = _lazy(__name__, _HOMES, "nn")
