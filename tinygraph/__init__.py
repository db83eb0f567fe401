"""tinygraph: a deep-learning micro-framework on a graph that you can read in one sitting.

    import tinygraph as tg

    x = tg.Tensor([[1.0, 2.0]])
    w = tg.Parameter([[0.5, -1.0]])
    loss = tg.mse_loss(tg.relu(tg.linear(x, w)), [[1.0]])
    loss.backward()                 # w.grad now holds d loss / d w

Tensors are the nodes of a graph, ops its arithmetic.  Start reading in tensor.py, op.py, graph.py.
"""

import sys as _sys

if getattr(_sys, "argv", [])[:1] == ["-m"]:  # `python -m` loads a package before its program
    import tinygraph_command as _command

    _command.quiet_where_it_is_run(_sys.orig_argv)

from math import e, inf, nan, pi
from typing import TYPE_CHECKING

from numpy import dtype, finfo, iinfo, newaxis

import tinygraph.plan
from tinygraph import cuda
from tinygraph.base import errors
from tinygraph.base import moved as _moved
from tinygraph.base.dtypes import *  # noqa: F403
from tinygraph.base.dtypes import __all__ as _dtypes
from tinygraph.base.dtypes import bool_ as bool
from tinygraph.base.dtypes import float16 as half
from tinygraph.base.dtypes import float32 as float
from tinygraph.base.dtypes import float64 as double
from tinygraph.base.dtypes import int16 as short
from tinygraph.base.dtypes import int32 as int
from tinygraph.base.dtypes import int64 as long
from tinygraph.base.kept_memory import keep_memory
from tinygraph.base.lazy import above, lazy
from tinygraph.base.precision import get_float32_matmul_precision, set_float32_matmul_precision
from tinygraph.cuda.random_numbers import fill_uniform
from tinygraph.engine.device import device
from tinygraph.engine.graph import Graph
from tinygraph.engine.op import Op
from tinygraph.engine.parameter import Parameter
from tinygraph.engine.random import Generator, manual_seed
from tinygraph.engine.running import no_grad
from tinygraph.engine.spec import Spec
from tinygraph.engine.tensor import Tensor, leaf
from tinygraph.interop.torch_names import fill as _fill_absent
from tinygraph.ops import EXPORTS as _op_names
from tinygraph.ops.leaves.creation import *  # noqa: F403
from tinygraph.ops.leaves.creation import __all__ as _creation

__version__ = "0.1.0"
__plan__ = "known"  # see plan/declared.py

keep_memory()

_moved.install()
_fill_absent()
# What lower floors reach above themselves, beside the ops (ops/__init__.py).
above.Tensor, above.leaf, above.fill_uniform = Tensor, leaf, fill_uniform
for _home, _names in {
    "engine.graph": "run_backward",
    "ops.leaves.copies": "deep reduced restore shallow",
    "ops.leaves.creation": "empty full ones tensor zeros",
    "ops.leaves.given": "fitting kept operand set_data set_grad set_requires_grad set_value taken",
    "ops.leaves.sampling": "bernoulli multinomial",
    "interop.dlpack": "cuda_array_interface to_dlpack",
    "interop.of_numpy": "call_numpy call_ufunc",
    "interop.torch_names": "no_such_name",
    "show.graph_picture": "small_picture",
    "testing.broken_op": "broken_forward broken_gradients wrong_parameters wrong_product",
    "watch.anomaly": "raise_for_bad_values",
    "watch.kernel_table": "kernel_table",
}.items():
    above.homes |= {_name: f"tinygraph.{_home}:{_name}" for _name in _names.split()}

if TYPE_CHECKING:
    from tinygraph import data, distributed, nn, optim, show, testing, training
    from tinygraph.engine import autograd
    from tinygraph.files.saving import load, save
    from tinygraph.interop import onnx
    from tinygraph.interop.dlpack import from_dlpack
    from tinygraph.ops import *  # noqa: F403
    from tinygraph.ops.common.operands import result_type
    from tinygraph.ops.leaves.sampling import (
        bernoulli,
        multinomial,
        normal,
        rand,
        rand_like,
        randint,
        randn,
        randn_like,
        randperm,
    )
    from tinygraph.plan import compile, plan
    from tinygraph.watch.anomaly import detect_anomaly
else:
    # What they import is much, and a graph needs none of it.
    _HOMES = {
        **dict.fromkeys(_op_names, "tinygraph.ops"),
        "result_type": "tinygraph.ops.common.operands",
        "compile": "tinygraph.plan.compiled",
        "detect_anomaly": "tinygraph.watch.anomaly",
        "from_dlpack": "tinygraph.interop.dlpack",
        "plan": "tinygraph.plan.graph_plan",
        "load": "tinygraph.files.saving",
        "save": "tinygraph.files.saving",
        "bernoulli": "tinygraph.ops.leaves.sampling",
        "multinomial": "tinygraph.ops.leaves.sampling",
        "normal": "tinygraph.ops.leaves.sampling",
        "rand": "tinygraph.ops.leaves.sampling",
        "rand_like": "tinygraph.ops.leaves.sampling",
        "randint": "tinygraph.ops.leaves.sampling",
        "randn": "tinygraph.ops.leaves.sampling",
        "randn_like": "tinygraph.ops.leaves.sampling",
        "randperm": "tinygraph.ops.leaves.sampling",
        "autograd": "tinygraph.engine.autograd",
        "data": "tinygraph.data",
        "distributed": "tinygraph.distributed",
        "nn": "tinygraph.nn",
        "onnx": "tinygraph.interop.onnx",
        "optim": "tinygraph.optim",
        "show": "tinygraph.show",
        "sklearn": "tinygraph.interop.sklearn",
        "testing": "tinygraph.testing",
        "training": "tinygraph.training",
    }
    __getattr__, __dir__ = lazy(__name__, _HOMES, "torch")
    # `tg.plan` is a function, and lives in a room of its name.  Python binds the room to that name
    # when it loads it, which is therefore done before; loaded is only its list of contents.  In the
    # same way `tg.device` and `tg.tensor` hide the modules of these names.
    del plan, tinygraph

__all__ = [
    "Generator",
    "Graph",
    "Op",
    "Parameter",
    "Spec",
    "Tensor",
    "autograd",
    "bernoulli",
    "bool",
    "compile",
    "cuda",
    "data",
    "detect_anomaly",
    "device",
    "distributed",
    "double",
    "e",
    "dtype",
    "errors",
    "finfo",
    "float",
    "from_dlpack",
    "get_float32_matmul_precision",
    "half",
    "iinfo",
    "inf",
    "int",
    "load",
    "long",
    "manual_seed",
    "multinomial",
    "nan",
    "newaxis",
    "nn",
    "no_grad",
    "onnx",
    "optim",
    "normal",
    "pi",
    "plan",
    "rand",
    "rand_like",
    "randint",
    "randn",
    "randn_like",
    "randperm",
    "result_type",
    "save",
    "set_float32_matmul_precision",
    "short",
    "show",
    "testing",
    "training",
    *_creation,
    *_dtypes,
    *_op_names,
]
