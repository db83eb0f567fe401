"""How operators of ONNX are computed: the table, and what its entries share.

A value on its way through a network is one of two things:

    Tensor    float32 and float64 numbers: ops of tinygraph, with gradients
    array     everything else: shapes, indices, masks, constants, halves; numpy

so that what a file computes about shapes is done on the host, at each call, for the batch of the
call.  An importer takes its `Node` and the values of the inputs, None for one that is left out, and
gives the value of the output, or a tuple of them:

    @importer("LeakyRelu")
    def leaky_relu(node, x):
        return tg.leaky_relu(x, node["alpha"])

Numbers narrower than float32 are computed in float32 and rounded, but where `numpy=` names a
function that takes them as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from tinygraph.base import OnnxError, too_large
from tinygraph.engine import Tensor, as_tensor, here
from tinygraph.ops.common import astype

Value = Any  # Tensor, Array or None
Importer = Callable[..., Any]

MOST_ELEMENTS = 2**31  # of a result whose size stands in a file, as that of ConstantOfShape


class UnmappedError(OnnxError):
    """An operator that no importer knows."""


class Node:
    """One operator of a file: its kind, its attributes with their defaults, and its names.

    `node["axis"]` is an attribute, None where it is left out and has no default.
    """

    def __init__(
        self,
        kind: str,
        version: int,
        attributes: dict[str, Any],
        inputs: tuple[str, ...] = (),
        outputs: tuple[str, ...] = ("",),
        name: str = "",
        domain: str = "",
    ) -> None:
        self.kind, self.version, self.attributes = kind, version, attributes
        self.inputs, self.outputs, self.name, self.domain = inputs, outputs, name, domain

    def __getitem__(self, name: str) -> Any:
        return self.attributes.get(name)

    def __repr__(self) -> str:
        domain = f"{self.domain}." if self.domain else ""
        called = f" {self.name!r}" if self.name else ""
        return f"{domain}{self.kind}{called} (opset {self.version})"

    def wants(self, output: int) -> bool:
        """Whether somebody uses an output."""
        return output < len(self.outputs) and self.outputs[output] != ""

    def refuse(self, what: str, expected: str, got: object, way_out: str = "") -> OnnxError:
        """The error that something of this node is not read."""
        return OnnxError(repr(self), what, expected, got, way_out)


class Entry(NamedTuple):
    """An importer, and how it is called: see `importer`."""

    run: Importer
    numpy: Importer | None
    tensors: str
    raw: bool
    trains: bool


TABLE: dict[tuple[str, str], Entry] = {}


def importer(
    *kinds: str,
    numpy: Importer | None = None,
    tensors: str = "f",
    raw: bool = False,
    trains: bool = False,
) -> Callable[[Importer], Importer]:
    """Register a function for operators.

    Parameters
    ----------
    *kinds : str
        Names of operators of ONNX's own domain.
    numpy : function of arrays, optional
        What computes where no input is a Tensor of a dtype in `tensors`; it takes no node.
    tensors : str
        The kinds of dtypes, as in `dtype.kind`, that the function takes as Tensors.
    raw : bool
        Call the function with the values as they come: it looks itself.
    trains : bool
        Pass `training=`: whether the network is in training mode.
    """

    def register(run: Importer) -> Importer:
        for kind in kinds:
            TABLE["", kind] = Entry(run, numpy, tensors, raw, trains)
        return run

    return register


def call(entry: Entry, node: Node, values: list[Value], training: bool) -> tuple[Value, ...]:
    """The outputs of a node."""
    options = {"training": training} if entry.trains else {}
    if not entry.raw:
        given = [x for x in values if isinstance(x, Tensor) and x.dtype.kind in entry.tensors]
        if entry.numpy is not None and (not given or any(is_half(x) for x in values)):
            return as_tuple(entry.numpy(*[array(x) for x in values]))
        halves = [x.dtype for x in values if is_half(x)]
        outputs = as_tuple(entry.run(node, *[_widened(x) for x in values], **options))
        return outputs if not halves else tuple([_narrowed(y, halves[0]) for y in outputs])
    return as_tuple(entry.run(node, *values, **options))


def as_tuple(outputs: Any) -> tuple[Value, ...]:
    """Outputs as a tuple, numpy's scalars as arrays."""
    many = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    return tuple([x if x is None or isinstance(x, Tensor) else np.asarray(x) for x in many])


# ---- values -----------------------------------------------------------------------------------


def is_plain(dtype: np.dtype[Any]) -> bool:
    """Whether a Tensor can have a dtype: those of numpy, and not those of `ml_dtypes`."""
    return dtype.isbuiltin == 1 and dtype.kind in "fiub" and dtype.itemsize <= 8


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is one of floats, those of `ml_dtypes` too."""
    return dtype.kind in "fV" and ("float" in dtype.name)


def is_half(x: Value) -> bool:
    """Whether x has floats that the ops do not take: float16, bfloat16, float8."""
    return x is not None and is_float(x.dtype) and x.dtype not in (np.float32, np.float64)


def _widened(x: Value) -> Value:
    """Floats as a Tensor that ops take, anything else as it is."""
    if x is None or not is_float(x.dtype):
        return x
    if is_half(x):
        return as_tensor(array(x).astype(np.float32))
    return x if isinstance(x, Tensor) else as_tensor(x)


def _narrowed(y: Value, dtype: np.dtype[Any]) -> Value:
    if y is None or y.dtype != np.float32:
        return y
    with np.errstate(all="ignore"):
        return array(y).astype(dtype)


def array(x: Value) -> Any:
    """The value as a numpy array; None stays None."""
    return x.numpy() if isinstance(x, Tensor) else x


def tensor(x: Value) -> Tensor:
    """The value as a Tensor."""
    return as_tensor(x)


def wanted_by_gradients(values: Iterable[Value]) -> bool:
    """Whether a gradient is to flow back through one of the values."""
    return here.top.remembers and any(isinstance(x, Tensor) and x.requires_grad for x in values)


def ints(x: Value) -> list[int]:
    """The numbers of a 1-d array of integers: a shape, axes, pads."""
    found = array(x)
    if found.dtype.kind not in "iu" or found.ndim > 1:
        raise OnnxError("", "an input", "a list of integers", f"{found.dtype} {found.shape}")
    return [int(n) for n in found.reshape(-1)]


def axis_of(axis: int, ndim: int) -> int:
    """An axis counted from the front."""
    if not -ndim <= axis < ndim:
        raise OnnxError("", "axis", f"one of {ndim} axes", axis)
    return axis % ndim


def axes_of(axes: Iterable[int], ndim: int) -> list[int]:
    """Axes counted from the front, each of them once."""
    found = [axis_of(axis, ndim) for axis in axes]
    if len({*found}) < len(found):
        raise OnnxError("", "axes", "each of them once", found)
    return found


def of_axes(node: Node, name: str, count: int, usual: int) -> list[int]:
    """An attribute of `count` numbers; where it is left out, the usual one for each."""
    found = node[name] or [usual] * count
    if len(found) != count:
        raise node.refuse(name, f"{count} numbers", found)
    return list(found)


def take_memory(shape: Iterable[int]) -> tuple[int, ...]:
    """A shape that an input says, where an array of it may be made; else OnnxError."""
    sizes, count = tuple(int(n) for n in shape), 1
    for n in sizes:
        count *= n
        if n < 0 or len(sizes) > 64:
            raise OnnxError("", "shape", "up to 64 sizes of 0 or more", sizes)
    if count > MOST_ELEMENTS or any(n > MOST_ELEMENTS for n in sizes):
        raise OnnxError("", "shape", f"at most {MOST_ELEMENTS:,} elements", sizes)
    if why := too_large(4 * count):
        raise OnnxError("", "shape", "a size that there is memory for", f"{sizes}: {why}")
    return sizes


def cast(x: Value, dtype: np.dtype[Any]) -> Value:
    """The value in another dtype of numpy; from and to floats of 32 and 64 bits with a gradient."""
    if isinstance(x, Tensor) and dtype in (np.float32, np.float64):
        return astype(x, dtype)
    with np.errstate(all="ignore"):
        return array(x).astype(dtype)
