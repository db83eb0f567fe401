"""tg.onnx.load: a file of the format ONNX as a module."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph.base import AnyPath, OnnxError, as_path, unmasked
from tinygraph.engine import Array, Buffer, Parameter, Tensor, as_tensor
from tinygraph.interop.onnx.nodes import Value, is_plain
from tinygraph.interop.onnx.program import Expansion, Program, versions
from tinygraph.interop.onnx.reading import MOST_BYTES, Budget, dtype_of, read_model, read_tensor
from tinygraph.nn.module import Module

_MOST_PARTS = 16  # of a dotted name
# Inputs that no gradient is for: by operator, their positions.
_SETTINGS = {
    "BatchNormalization": (3, 4),
    "Clip": (1, 2),
    "Dropout": (1, 2),
    "OneHot": (1, 2),
    "Pad": (2,),
    "Pow": (1,),
    "Range": (0, 1, 2),
    "Resize": (1, 2, 3),
    "Upsample": (1,),
}


class OnnxModule(Module):
    """The network of a file: what `tg.onnx.load` returns.

    Attributes
    ----------
    input_names, output_names : tuple of str
        As the file has them, without the inputs that it gives values itself.

    Notes
    -----
    `forward` takes the inputs in their order, or by name, and returns the output, a tuple where
    there are several.  Parameters are attributes under the names of the file.
    """

    def __init__(
        self, program: Program, inputs: dict[str, tuple[str, Any]], constants: dict[str, Array]
    ) -> None:
        self.input_names, self.output_names = tuple(inputs), tuple(program.outputs)
        self._inputs, self._program, self._constants = inputs, program, constants
        self._places: dict[str, tuple[str, ...]] = {}

    def forward(self, *inputs: Any, **named: Any) -> Any:
        values: dict[str, Value] = dict(self._constants)
        for name, place in self._places.items():
            leaf: Any = self
            for part in place:
                leaf = vars(leaf)[part]
            values[name] = leaf
        given = self._given(inputs, named)
        for name, value in given.items():
            values[name] = self._as_input(name, value)
        outputs = [_as_output(y) for y in self._program.run(values, self.training)]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _given(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """Inputs by their names."""
        names = ", ".join(self.input_names) or "none"
        if len(inputs) > len(self.input_names):
            raise OnnxError("forward", "inputs", f"at most {names}", f"{len(inputs)} inputs")
        given = dict(zip(self.input_names, inputs, strict=False))
        valid = {valid_name(name): name for name in self.input_names}
        for key, value in named.items():
            name = key if key in self.input_names else valid.get(key)
            if name is None or name in given:
                got = "twice" if name in given else "no such input"
                raise OnnxError("forward", key, f"each of {names} once", got)
            given[name] = value
        if missing := [name for name in self.input_names if given.get(name) is None]:
            optional = [name for name in missing if self._inputs[name][0] == "optional"]
            if absent := [name for name in missing if name not in optional]:
                raise OnnxError("forward", "inputs", names, f"no {', '.join(absent)}")
        return given

    def _as_input(self, name: str, value: Any) -> Value:
        """Floats as Tensors; other arrays as they are."""
        _, dtype = self._inputs[name]
        if unmasked("forward", name, value) is None:
            return None
        if isinstance(value, Tensor):
            found: Value = value
        elif hasattr(value, "dtype"):
            found = np.asarray(value)
        else:  # Python's numbers have the dtype that is asked for
            found = np.asarray(value, dtype)
        if found.dtype != dtype:
            way_out = f"x.astype({dtype.name!r})"
            raise OnnxError("forward", name, f"an array of {dtype}", found.dtype, way_out)
        floats = dtype in (np.float32, np.float64)
        return as_tensor(found) if floats and not isinstance(found, Tensor) else found

    def extra_repr(self) -> str:
        return f"{', '.join(self.input_names)} -> {', '.join(self.output_names)}"


def _as_output(y: Value) -> Any:
    """A Tensor, where a Tensor can have the dtype; numpy's array of bfloat16 and its kin."""
    if y is None or isinstance(y, Tensor) or not is_plain(y.dtype):
        return y
    return as_tensor(np.ascontiguousarray(y).reshape(y.shape))


def load(path: AnyPath, *, max_bytes: int = MOST_BYTES) -> OnnxModule:
    """Read a network of the format ONNX.

    Parameters
    ----------
    path : str or path
        The file.  Data beside it are read from its folder alone.
    max_bytes : int
        How much memory its tensors may take together.

    Returns
    -------
    Module
        In evaluation mode, in which it computes what the file says; `train()` makes
        BatchNormalization and Dropout what they are in training.  Initialisers of float32 and
        float64 are parameters, running statistics are buffers, both under the names of the file:
        "conv.weight" is `model.conv.weight`.  Everything else is constant.

    Raises
    ------
    OnnxError
        The file cannot be read, is damaged, asks for too much memory or for data elsewhere, or has
        an operator, an attribute or a dtype that is not read: the message names node and opset.

    References
    ----------
    ONNX, the specification: https://onnx.ai/onnx/operators/

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.onnx.load("model.onnx")  # doctest: +SKIP
    OnnxModule(x -> y)
    """
    try:
        return _load(as_path("load", "path", path), Budget(max_bytes))
    except RecursionError as error:
        raise OnnxError("load", str(path), "a model that is not nested as deep", error) from error


def _load(path: Path, budget: Budget) -> OnnxModule:
    model, initializers = read_model(path)
    graph = model.graph
    if len(graph.sparse_initializer):
        raise OnnxError("load", "initializer", "dense tensors", "a sparse one")
    tensors = {t.name: read_tensor(t, path.parent, budget) for t in initializers}
    if len(tensors) < len(initializers) or "" in tensors:
        raise OnnxError("load", "initializers", "a name of its own for each", "one that is used")
    _own_statistics(graph, tensors)
    functions = {(f.domain, f.name, f.overload): f for f in model.functions}
    expansion = Expansion(functions, budget)
    program = Program(
        graph.node, versions(model.opset_import), [y.name for y in graph.output], expansion
    )
    inputs = {x.name: _input(x) for x in graph.input if x.name not in tensors}
    kinds = _leaves(graph, tensors)
    constants = {name: array for name, array in tensors.items() if name not in kinds}
    module = OnnxModule(program, inputs, constants)
    _place_leaves(module, {name: kinds[name](tensors[name]) for name in tensors if name in kinds})
    return module.eval()


def _input(info: Any) -> tuple[str, Any]:
    """Whether an input may be left out, and its dtype."""
    kind = info.type.WhichOneof("value")
    if kind == "optional_type" and info.type.optional_type.elem_type.HasField("tensor_type"):
        code = info.type.optional_type.elem_type.tensor_type.elem_type
        return "optional", dtype_of(code, f"input {info.name!r}")
    if kind != "tensor_type":
        raise OnnxError("load", f"input {info.name!r}", "a tensor", kind)
    return "tensor", dtype_of(info.type.tensor_type.elem_type, f"input {info.name!r}")


def _own_statistics(graph: Any, tensors: dict[str, Array]) -> None:
    """Give each BatchNormalization statistics that nobody else uses: training rewrites them.

    Programs that make files smaller keep one of several initialisers that are equal.
    """
    uses = Counter(name for node in graph.node for name in node.input)
    taken = {*uses, *tensors, *(name for node in graph.node for name in node.output)}
    for node in graph.node:
        for i, kind in ((3, "mean"), (4, "var")):
            if node.op_type != "BatchNormalization" or len(node.input) <= i:
                continue
            name = node.input[i]
            if name in tensors and uses[name] > 1:
                own = f"{name}_{kind}"
                while own in taken:
                    own += "_"
                taken.add(own)
                tensors[own], node.input[i] = tensors[name].copy(), own


def _leaves(graph: Any, tensors: dict[str, Array]) -> dict[str, type]:
    """The initialisers that are parameters, and those that are buffers."""
    settings, uses = {}, set()
    for node in graph.node:
        places = _SETTINGS.get(node.op_type, ())
        for i, name in enumerate(node.input):
            if i in places:
                settings[name] = node.op_type
            else:
                uses.add(name)
    kinds: dict[str, type] = {}
    for name, array in tensors.items():
        if array.dtype in (np.float32, np.float64):
            if name not in settings or name in uses:
                kinds[name] = Parameter
            elif settings[name] == "BatchNormalization":
                kinds[name] = Buffer
    return kinds


# ---- names -----------------------------------------------------------------------------------


def valid_name(name: str) -> str:
    """A name that Python can have.

    >>> valid_name("onnx::MatMul_12"), valid_name("0")
    ('onnx__MatMul_12', '0')
    """
    return re.sub(r"\W", "_", name, flags=re.ASCII)


def _place_leaves(module: OnnxModule, leaves: dict[str, Tensor]) -> None:
    """Make leaves attributes of modules by their dotted names."""
    for name, leaf in leaves.items():
        parts = [valid_name(part) or "_" for part in name.split(".")]
        if len(parts) > _MOST_PARTS:
            parts = [valid_name(name)]
        holder, place = _holder(module, parts)
        vars(holder)[place[-1]] = leaf
        module._places[name] = tuple(place)
    module._name_leaves()


def _holder(module: Module, parts: list[str]) -> tuple[Module, list[str]]:
    """The module that a leaf belongs to, and its path; modules on the way are made."""
    holder, place = module, []
    for part in parts[:-1]:
        known = vars(holder).get(part)
        if type(known) is not Module:
            part = part if known is None and _is_free(holder, part) else _free(holder, part)
            vars(holder)[part] = Module()
        holder = vars(holder)[part]
        place.append(part)
    last = parts[-1] if _is_free(holder, parts[-1]) else _free(holder, parts[-1])
    return holder, [*place, last]


def _is_free(holder: Module, name: str) -> bool:
    return not hasattr(holder, name)


def _free(holder: Module, name: str) -> str:
    """A name like that which nothing has."""
    count = 2
    while not _is_free(holder, f"{name}_{count}"):
        count += 1
    return f"{name}_{count}"
