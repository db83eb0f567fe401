"""Op: the contract of a differentiable function, and the registry of all of them.

An op is a mathematical function with its derivative.  A subclass holds the hyper-parameters
(stride, axis, ...), which never change and never contain the batch size, and writes down

    infer(*specs) -> Spec                            shapes and dtypes, or an error
    forward(mem, *arrays) -> (out, saved)            y = f(x, w, ...)
    backward(mem, grad, saved, needs) -> gradients   gx = grad * df/dx, gw = grad * df/dw, ...

Applying it to tensors makes a node: `MyOp(stride)(x, w)`.

>>> import numpy as np, tinygraph as tg
>>> class Square(tg.Op):
...     def forward(self, mem, x):
...         return np.multiply(x, x, out=mem.empty(x.shape, x.dtype)), x
...     def backward(self, mem, grad, saved, needs):
...         return (2 * grad * saved,)
>>> x = tg.Tensor([3.0], requires_grad=True)
>>> Square()(x).backward()
>>> x.grad
array([6.], dtype=float32)
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from tinygraph.base import DeviceError, GraphError
from tinygraph.base.frozen import complete
from tinygraph.base.lazy import lazy
from tinygraph.engine.device import CPU, Device
from tinygraph.engine.memory import Memory, eager_memory
from tinygraph.engine.promises import keep_backward, keep_forward
from tinygraph.engine.running import here
from tinygraph.engine.spec import Array, Spec
from tinygraph.engine.tensor import Operand, Tensor, as_tensor, leaf
from tinygraph.engine.writes import Writes, refuse_overwritten

Gradients = tuple["Array | None", ...]
Needs = tuple[bool, ...]  # for each input, whether its gradient is wanted

_registry: dict[str, type[Op]] = {}  # "module.Class" -> the class, ours and users' own
if TYPE_CHECKING:
    registry = _registry
else:  # who asks for it looks at all ops, which are loaded for that
    __getattr__, __dir__ = lazy(__name__, {"registry": "tinygraph.ops.registered:registry"})


class Op:
    """A differentiable function.  Subclass it, and apply it as `MyOp(*hyper_parameters)(x, w)`.

    Attributes
    ----------
    name : str
        The class name in lower case with underscores: `MaxPool2d` is "max_pool2d".
    updates : tuple of int
        Positions of inputs that the op writes, once for each training evaluation (running
        statistics).  No other input is ever changed.
    communicates : bool
        Whether its body talks to other processes: it is run once in each evaluation, and no more.

    Notes
    -----
    Inputs are validated in `infer` (shapes, dtypes) and `check` (what only values show), once, and
    always by raising.  Arrays reach `forward` in any memory layout.  Buffers come from `mem`, whose
    requests may depend on specs, hyper-parameters and `needs` only (see memory.py); an op that
    makes its arrays itself is legal, but opaque to a plan.
    """

    name: ClassVar[str] = "op"
    communicates: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in vars(cls):
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
        for base in cls.__bases__:
            complete(base)
        _registry[f"{cls.__module__}.{cls.__qualname__}"] = cls

    @property
    def updates(self) -> tuple[int, ...]:
        """Which inputs this op writes; a property, for hyper-parameters may decide it."""
        return ()

    # ---- what a subclass writes -------------------------------------------------------------

    def infer(self, *specs: Any) -> Spec:
        """The output's shape and dtype, or ShapeError / DtypeError.  Default: like input 0."""
        return Spec(*specs[0])

    def check(self, *arrays: Any) -> None:
        """Look at values on the host and raise ArgumentError: a label out of range.  Optional."""

    def forward(self, mem: Memory, *arrays: Any) -> tuple[Array, Any]:
        """The output, and whatever backward needs (None if nothing; see `mem.needs`)."""
        raise GraphError(f"{self.name}: no forward in numpy. Way out: define forward(mem, *arrays)")

    def backward(self, mem: Memory, grad: Array, saved: Any, needs: Needs) -> Gradients:
        """One gradient for each input, None where `needs` is False.

        `grad` is the upstream gradient; it may be returned, as it is or as a view, but never
        changed.  A gradient has the shape and the dtype of its input.
        """
        raise GraphError(f"{self.name}: not differentiable. Way out: define backward, or detach()")

    def forward_kernel(self, mem: Memory, *arrays: Any) -> tuple[Array, Any]:
        """`forward` as a CUDA kernel; the arrays are contiguous."""
        raise DeviceError(f"{self.name}: no kernel yet. Way out: x.to('cpu')")

    def backward_kernel(self, mem: Memory, grad: Array, saved: Any, needs: Needs) -> Gradients:
        """`backward` as a CUDA kernel; the arrays are contiguous."""
        raise DeviceError(f"{self.name}: no kernel yet. Way out: x.to('cpu')")

    def output_device(self, device: Device) -> Device:
        """Where the output of inputs on `device` lies: there too, except for `x.to(device)`."""
        return device

    def batch(
        self, specs: tuple[Spec, ...], carries: tuple[bool, ...]
    ) -> Literal["map", "sum"] | None:
        """How samples, which lie on axis 0 of the inputs that `carries` marks, meet in the output.

        "map": row i of the output depends on row i of those inputs alone, or on neighbouring rows
        that become one, as one may become several.  "sum": the output is a sum over rows, or a
        mean: see `divisor`.  None, the default: neither.  A plan cuts the batch into tiles where
        every op claims something, and each sample has rows of its own.
        """
        return None

    def divisor(self, *inputs: Any) -> float | None:
        """What a claimed "sum" is divided by: 1, or for a mean how many terms these inputs have.

        A plan asks before it cuts the batch: in the place of what it has to compute first stands a
        Spec.  None: a Spec does not tell, so that the batch stays whole.
        """
        return 1.0

    # ---- what the engine does ---------------------------------------------------------------

    def __call__(self, *inputs: Operand) -> Tensor:
        """Apply the op: make the node, evaluate it, and return it."""
        if not inputs:
            raise GraphError(self.name, "inputs", "at least one", "none")
        return here.top.apply(self, inputs)

    def make_node(self, operands: tuple[Operand, ...]) -> Tensor:
        """The node of this op on some operands, evaluated."""
        inputs = as_tensors(operands)
        node = leaf(None, self.output_device(inputs[0].device))
        node.op, node.inputs = self, inputs
        evaluate(node)
        if not here.top.remembers:
            node.op, node.inputs, node.saved = None, (), None
        return node

    def __repr__(self) -> str:
        settings = ", ".join(f"{k}={v}" for k, v in vars(self).items())
        return f"{type(self).__name__}({settings})"


def as_tensors(operands: tuple[Operand, ...]) -> tuple[Tensor, ...]:
    """Operands as nodes; arrays and numbers go to the device of the first tensor, or the cpu."""
    for x in operands:
        if not isinstance(x, Tensor):
            break
    else:
        return operands  # type: ignore[return-value]
    devices = [x.device for x in operands if isinstance(x, Tensor)] or [CPU]
    return tuple([as_tensor(x, None, devices[0]) for x in operands])


def evaluate(node: Tensor) -> None:
    """Run the op of a node on the values of its inputs: for a new node, and for one run again.

    Nodes that are not to remember have no gradients that they need, so that nothing is saved.
    """
    op, inputs, top = node.op, node.inputs, here.top
    device = inputs[0].device
    arrays = [x._value for x in inputs if x.device is device]
    if len(arrays) < len(inputs):
        (got, *_) = [f"one on {x.device}" for x in inputs if x.device is not device]
        raise DeviceError(op.name, "inputs", f"all on {device}", got, "x.to(device)")
    spec = op.infer(*[Spec(a.shape, a.dtype) for a in arrays])
    # A GPU would have to be waited for.  There kernels make NaN of a bad value, and the graph is
    # searched when a NaN is read (`Tensor.item`); without a graph the op looks at once.
    if device.on_host:
        op.check(*arrays)
    elif not top.remembers and type(op).check is not Op.check:
        op.check(*device.to_host(*arrays))
    differentiable = top.remembers and spec.dtype.kind == "f"
    needs = tuple([differentiable and x._requires_grad for x in inputs])
    with device.quiet():  # inf and nan are results, not accidents
        returned = top.forward(node, eager_memory(needs, device), arrays)
    node._value, node.saved = keep_forward(op, spec, returned, not node.device.runs_kernels)
    node.written = Writes.count
    if top.remembers:
        node.needs, node._requires_grad = needs, True in needs


def differentiate(node: Tensor, grad: Array) -> list[tuple[Tensor, Array]]:
    """Run the backward of a node's op: the inputs that a gradient reaches, each with its own."""
    refuse_overwritten(node)
    mem = eager_memory(node.needs, node.device)
    return keep_backward(node, here.top.backward(node, mem, grad, node.saved))
