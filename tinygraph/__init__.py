"""tinygraph: a deep-learning micro-framework on a graph that you can read in one sitting.

    import tinygraph as tg

    x = tg.Tensor([[1.0, 2.0]])
    w = tg.Parameter([[0.5, -1.0]])
    loss = tg.mse_loss(tg.relu(tg.linear(x, w)), [[1.0]])
    loss.backward()                 # w.grad now holds d loss / d w

Tensors are the nodes of a graph, ops its arithmetic.  Start reading in tensor.py, op.py, graph.py.
"""

from typing import TYPE_CHECKING

import tinygraph.plan
from tinygraph import cuda, errors
from tinygraph.anomaly import detect_anomaly, raise_for_bad_values
from tinygraph.creation import arange, full, ones, randn, zeros
from tinygraph.cuda.random_numbers import fill_uniform
from tinygraph.dtypes import promote_types
from tinygraph.graph import Graph
from tinygraph.lazy import later, lazy, no_such_name
from tinygraph.op import Op
from tinygraph.operators import above
from tinygraph.ops import *  # noqa: F403  # ops/__init__.py has a line for each function
from tinygraph.ops import EXPORTS as _op_names
from tinygraph.ops.shared.operands import result_type
from tinygraph.parameter import Parameter
from tinygraph.precision import get_float32_matmul_precision, set_float32_matmul_precision
from tinygraph.random import manual_seed
from tinygraph.running import no_grad
from tinygraph.shapes import Spec
from tinygraph.tensor import Tensor, leaf

__version__ = "0.1.0"

# What lower floors reach above themselves, beside the ops (ops/__init__.py).
above.Tensor, above.leaf = Tensor, leaf
above.fill_uniform = fill_uniform
above.kernel_table = later("tinygraph.kernel_table", "tabulate")
above.no_such_name = no_such_name
above.small_picture = later("tinygraph.show.graph_picture", "small_picture")
above.raise_for_bad_values = raise_for_bad_values

if TYPE_CHECKING:
    from tinygraph import data, nn, optim, show, testing, training
    from tinygraph.plan import compile, plan
    from tinygraph.saving import load, save
else:
    # What they import is much, and a graph needs none of it.
    _HOMES = {
        "compile": "tinygraph.plan.compiled",
        "plan": "tinygraph.plan.graph_plan",
        "load": "tinygraph.saving",
        "save": "tinygraph.saving",
        "data": "tinygraph.data",
        "nn": "tinygraph.nn",
        "optim": "tinygraph.optim",
        "show": "tinygraph.show",
        "testing": "tinygraph.testing",
        "training": "tinygraph.training",
    }
    __getattr__, __dir__ = lazy(__name__, _HOMES, "torch")
    # `tg.plan` is a function, and lives in a room of its name.  Python binds the room to that name
    # when it loads it, which is therefore done before; loaded is only its list of contents.
    del plan, tinygraph

__all__ = [
    "Graph",
    "Op",
    "Parameter",
    "Spec",
    "Tensor",
    "arange",
    "compile",
    "cuda",
    "data",
    "detect_anomaly",
    "errors",
    "full",
    "get_float32_matmul_precision",
    "load",
    "manual_seed",
    "nn",
    "no_grad",
    "ones",
    "optim",
    "plan",
    "promote_types",
    "randn",
    "result_type",
    "save",
    "set_float32_matmul_precision",
    "show",
    "testing",
    "training",
    "zeros",
    *_op_names,
]
