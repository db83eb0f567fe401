"""The engine: nodes, ops, the graph, and who runs them.  Read tensor.py, op.py, graph.py first.

    tensor, parameter, feeds    what a node is, and what a leaf holds
    op, promises, memory        what an op is, what it promises, where it gets its arrays
    graph, running, autograd    forward in topological order, backward in reverse
    operators, assigned, hooks  what stands behind `+`, `x.grad = g`, `register_hook`
    device, random              where, and from which numbers

Nothing here knows an op of ops/, or a kernel: these are higher floors.  Who writes one imports from
here, `from tinygraph.engine import Array, Memory, Op, Spec`; files of the engine from each other.
"""

from tinygraph.engine.device import CPU, Device, get_device
from tinygraph.engine.graph import Graph, run_backward, topological_order
from tinygraph.engine.memory import Memory, eager_memory
from tinygraph.engine.op import Gradients, Needs, Op
from tinygraph.engine.parameter import Buffer, Kept, Parameter
from tinygraph.engine.random import Generator, Words, default_generator, philox, uniform
from tinygraph.engine.running import Runner, here, no_grad
from tinygraph.engine.spec import (
    Array,
    Axes,
    Axis,
    Pair,
    Shape,
    Spec,
    broadcast_shapes,
    integer,
    integers,
    normalize_axes,
    reduced_shape,
    require_float,
)
from tinygraph.engine.tensor import Operand, Tensor, as_tensor, leaf
from tinygraph.engine.writes import Writes
