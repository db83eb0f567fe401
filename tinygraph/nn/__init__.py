"""Layers and networks, under PyTorch's names.  A layer is one class: parameters and `forward`.

Read module.py first.  A new layer goes into the file of its family, with one line here.
"""

from tinygraph.nn import init
from tinygraph.nn.activation import LogSoftmax, ReLU, Sigmoid, Softmax, Tanh
from tinygraph.nn.containers import Sequential
from tinygraph.nn.conv import Conv2d
from tinygraph.nn.linear import Linear
from tinygraph.nn.loss import CrossEntropyLoss, MSELoss
from tinygraph.nn.module import Buffer, Module
from tinygraph.nn.pooling import MaxPool2d
from tinygraph.nn.shape import Flatten
from tinygraph.tensor import Parameter

__all__ = [
    "Buffer", "Conv2d", "CrossEntropyLoss", "Flatten", "Linear", "LogSoftmax", "MSELoss",
    "MaxPool2d", "Module", "Parameter", "ReLU", "Sequential", "Sigmoid", "Softmax", "Tanh", "init",
]  # fmt: skip
