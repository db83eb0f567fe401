"""tinygraph: a deep-learning micro-framework on a graph that you can read in one sitting.

    import tinygraph as tg

    x = tg.Tensor([[1.0, 2.0]])
    w = tg.Parameter([[0.5, -1.0]])
    loss = tg.mse_loss(tg.relu(tg.linear(x, w)), [[1.0]])
    loss.backward()                 # w.grad now holds d loss / d w

Tensors are the nodes of a graph, ops its arithmetic.  Start reading in tensor.py, op.py, graph.py.
"""

from importlib import import_module
from typing import Any

from tinygraph import cuda, errors, nn, optim
from tinygraph.anomaly import detect_anomaly
from tinygraph.creation import arange, full, ones, randn, zeros
from tinygraph.graph import Graph
from tinygraph.op import Op
from tinygraph.ops import *  # noqa: F403  # ops/__init__.py has a line for each function
from tinygraph.ops import EXPORTS as _op_names
from tinygraph.plan import compile, plan
from tinygraph.precision import get_float32_matmul_precision, set_float32_matmul_precision
from tinygraph.random import manual_seed
from tinygraph.shapes import Spec
from tinygraph.tensor import Parameter, Tensor, no_grad

__version__ = "0.1.0"

# Rooms that are loaded when first used: what they import is much, and a graph needs none of it.
_LAZY = ("data", "show", "testing", "training")

__all__ = [
    "Graph",
    "Op",
    "Parameter",
    "Spec",
    "Tensor",
    "arange",
    "compile",
    "cuda",
    "detect_anomaly",
    "errors",
    "full",
    "get_float32_matmul_precision",
    "manual_seed",
    "nn",
    "no_grad",
    "ones",
    "optim",
    "plan",
    "randn",
    "set_float32_matmul_precision",
    "zeros",
    *_op_names,
    *_LAZY,
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return import_module(f"tinygraph.{name}")
    raise AttributeError(f"module 'tinygraph' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
