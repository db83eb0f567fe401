"""Layers and networks, under PyTorch's names.  A layer is one class: parameters and `forward`.

Read module.py first.  A new layer goes into the file of its family, with one line here.
"""

from tinygraph.nn import init
from tinygraph.nn.activation import (
    ELU,
    GELU,
    Identity,
    LeakyReLU,
    LogSoftmax,
    ReLU,
    Sigmoid,
    Softmax,
    Softplus,
    Tanh,
)
from tinygraph.nn.containers import ModuleList, Residual, Sequential
from tinygraph.nn.conv import Conv2d
from tinygraph.nn.dropout import Dropout
from tinygraph.nn.embedding import Embedding
from tinygraph.nn.linear import Linear
from tinygraph.nn.loss import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    HalfSquaredError,
    HuberLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
)
from tinygraph.nn.module import Buffer, Module
from tinygraph.nn.normalization import BatchNorm1d, BatchNorm2d, LayerNorm
from tinygraph.nn.pooling import AvgPool2d, GlobalAvgPool2d, MaxPool2d
from tinygraph.nn.shape import Flatten, Unflatten
from tinygraph.tensor import Parameter

__all__ = [
    "AvgPool2d",
    "BCELoss",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "Buffer",
    "Conv2d",
    "CrossEntropyLoss",
    "Dropout",
    "ELU",
    "Embedding",
    "Flatten",
    "GELU",
    "GlobalAvgPool2d",
    "HalfSquaredError",
    "HuberLoss",
    "Identity",
    "L1Loss",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSoftmax",
    "MSELoss",
    "MaxPool2d",
    "Module",
    "ModuleList",
    "NLLLoss",
    "Parameter",
    "ReLU",
    "Residual",
    "Sequential",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Tanh",
    "Unflatten",
    "init",
]
