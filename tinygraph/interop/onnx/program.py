"""A list of nodes that run one after the other: a graph of a file, or the body of a function.

Some operators are functions: the standard gives their bodies in simpler operators, for the dtypes
that come (`onnx.defs`).  Where no importer knows one, its body runs, with gradients through it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from tinygraph.base import OnnxError, TinygraphError
from tinygraph.interop.onnx import operators
from tinygraph.interop.onnx.attributes import require_attributes, require_opset
from tinygraph.interop.onnx.library import onnx
from tinygraph.interop.onnx.nodes import Entry, Node, UnmappedError, Value, call
from tinygraph.interop.onnx.reading import Budget, read_tensor

MOST_NODES = 50_000  # of a file, functions unfolded
MOST_NESTED = 32  # functions within functions
_KEPT = 16  # bodies of an operator, for different inputs

Functions = Mapping[tuple[str, str, str], Any]  # of the file, by domain, name and overload


class Expansion:
    """What bodies of functions need when a file is read: the functions, and how much is left."""

    def __init__(self, functions: Functions, budget: Budget) -> None:
        self.functions, self.budget, self.nodes, self.depth = functions, budget, 0, 0

    def count(self, nodes: int) -> None:
        self.nodes += nodes
        if self.nodes > MOST_NODES or self.depth > MOST_NESTED:
            expected = f"at most {MOST_NODES:,} nodes, {MOST_NESTED} functions in one another"
            raise OnnxError("load", "nodes", expected, "more")


class Program:
    """Nodes in their order, each with what computes it.

    Parameters
    ----------
    nodes : sequence of NodeProto
    opsets : mapping
        The version of each domain.
    outputs : sequence of str
        The names whose values are asked for.
    arguments : mapping
        Values of the attributes of the function that this is the body of.
    """

    def __init__(
        self,
        nodes: Any,
        opsets: Mapping[str, int],
        outputs: list[str],
        expansion: Expansion,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        expansion.count(len(nodes))
        self.outputs = outputs
        self.steps: list[tuple[Node, Callable[..., tuple[Value, ...]]]] = []
        for proto in nodes:
            node = read_node(proto, opsets, expansion, arguments or {})
            self.steps.append((node, find(node, proto, opsets, expansion)))
        self._last = self._last_uses()

    def _last_uses(self) -> list[list[str]]:
        """For each step, the names that nobody needs after it."""
        seen, last = set(self.outputs), []
        for node, _ in reversed(self.steps):
            names = {name for name in (*node.inputs, *node.outputs) if name and name not in seen}
            seen |= names
            last.append(sorted(names))
        return last[::-1]

    def run(self, values: dict[str, Value], training: bool) -> list[Value]:
        """The outputs; `values` has the inputs, and is used up."""
        for (node, compute), unneeded in zip(self.steps, self._last, strict=True):
            try:
                inputs = [values[name] if name else None for name in node.inputs]
            except KeyError as missing:
                raise node.refuse("inputs", "a value that was computed before", missing) from None
            outputs = computed(node, compute, inputs, training)
            for name, output in zip(node.outputs, outputs, strict=False):
                if name:
                    values[name] = output
            for name in unneeded:
                values.pop(name, None)
        try:
            return [values[name] for name in self.outputs]
        except KeyError as missing:
            raise OnnxError("load", "outputs", "names that a node computes", missing) from None


def computed(
    node: Node, compute: Callable[..., tuple[Value, ...]], inputs: list[Value], training: bool
) -> tuple[Value, ...]:
    """The outputs of one node; what goes wrong is told with its name."""
    try:
        with np.errstate(all="ignore"):  # inf and nan are results
            outputs = compute(inputs, training)
    except OnnxError as error:
        if str(error).startswith(": "):  # from below, where the node is not known
            raise OnnxError(f"{node!r}{error}") from error
        raise
    except (TinygraphError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        got = ", ".join([_described(x) for x in inputs])
        raise node.refuse("inputs", "values that it takes", f"{got} ({error})") from error
    except MemoryError as error:
        raise node.refuse("outputs", "some that fit into memory", error or "more") from error
    if len(outputs) < sum(map(bool, node.outputs)):
        raise node.refuse("outputs", f"at most {len(outputs)}", len(node.outputs))
    return outputs


def _described(x: Value) -> str:
    return "none" if x is None else f"{x.dtype}{list(x.shape)}"


# ---- reading nodes ----------------------------------------------------------------------------


def read_node(
    proto: Any, opsets: Mapping[str, int], expansion: Expansion, arguments: Mapping[str, Any]
) -> Node:
    """A NodeProto with its attributes, and the defaults of those that are left out."""
    domain = "" if proto.domain == "ai.onnx" else proto.domain
    version = opsets.get(domain, 0)
    node = Node(
        proto.op_type, version, {}, tuple(proto.input), tuple(proto.output), proto.name, domain
    )
    if why := operators.REFUSED.get((domain, node.kind)):
        raise node.refuse("operator", "one that computes tensors of numbers", why)
    given: dict[str, Any] = {}
    for attribute in proto.attribute:
        if not attribute.ref_attr_name:
            given[attribute.name] = _attribute(node, attribute, expansion)
        elif attribute.ref_attr_name in arguments:
            given[attribute.name] = arguments[attribute.ref_attr_name]
    node.attributes |= _defaults(node.kind, version, domain) | given
    schema = _schema(node.kind, version, domain)
    if domain == "" and schema and (domain, node.kind, proto.overload) not in expansion.functions:
        require_attributes(node, schema, given)
    return node


@lru_cache(maxsize=1024)
def _schema(kind: str, version: int, domain: str) -> Any:
    """What the standard says of an operator; None where it has none of the name."""
    try:
        return onnx.defs.get_schema(kind, max(version, 1), domain)
    except onnx.defs.SchemaError:
        return None


@lru_cache(maxsize=1024)
def _defaults(kind: str, version: int, domain: str) -> dict[str, Any]:
    """The attributes that an operator has where a file leaves them out."""
    schema, node = _schema(kind, version, domain), Node(kind, version, {})
    known = {} if schema is None else schema.attributes
    given = {name: a.default_value for name, a in known.items() if a.default_value.type}
    return {
        name: _attribute(node, value, Expansion({}, Budget(0))) for name, value in given.items()
    }


def _attribute(node: Node, attribute: Any, expansion: Expansion) -> Any:
    """The value of an attribute as Python has it; a tensor as an array."""
    kinds = onnx.AttributeProto
    if attribute.type == kinds.TENSOR:
        return read_tensor(attribute.t, None, expansion.budget)
    if attribute.type == kinds.INT:
        return attribute.i
    if attribute.type == kinds.INTS:
        return list(attribute.ints)
    if attribute.type == kinds.FLOAT:
        return _decimal(attribute.f)
    if attribute.type == kinds.FLOATS:
        return [_decimal(f) for f in attribute.floats]
    if attribute.type == kinds.STRING:
        return attribute.s.decode("utf-8", "replace")
    if attribute.type == kinds.STRINGS:
        return [s.decode("utf-8", "replace") for s in attribute.strings]
    got = f"{attribute.name} of type {attribute.type}"
    raise node.refuse("attribute", "numbers, strings or a tensor", got)


def _decimal(number: float) -> float:
    """What a float32 of the file was written from: 0.1, not 0.10000000149."""
    return float(str(np.float32(number)))


# ---- what computes a node ---------------------------------------------------------------------


def find(
    node: Node, proto: Any, opsets: Mapping[str, int], expansion: Expansion
) -> Callable[..., tuple[Value, ...]]:
    """A function of inputs and training mode: an importer, or the body of a function."""
    local = expansion.functions.get((node.domain, node.kind, proto.overload))
    if local is not None:
        return _local(node, local, expansion)
    known = node.kind, node.version, node.domain
    entry, schema = operators.TABLE.get((node.domain, node.kind)), _schema(*known)
    if entry is not None:
        if schema is None:
            raise node.refuse("operator", "one of this opset", "none of this name")
        return _Imported(entry, node, schema.min_input)
    if schema is not None and (schema.has_function or schema.has_context_dependent_function):
        return _Body(node, proto, schema, opsets, expansion.depth)
    expected = "an operator that tinygraph reads, or one with a body"
    raise UnmappedError(repr(node), "operator", expected, "none of this name")


class _Imported:
    """An operator in the table."""

    def __init__(self, entry: Entry, node: Node, required: int) -> None:
        self.entry, self.node, self.required = entry, node, required

    def __call__(self, inputs: list[Value], training: bool) -> tuple[Value, ...]:
        if any(x is None for x in inputs[: self.required]):
            expected, got = f"the first {self.required}", "one that is left out"
            raise self.node.refuse("inputs", expected, got)
        return call(self.entry, self.node, inputs, training)


class _Called:
    """A function: values go in and out by the names that it has for them."""

    def __init__(self, program: Program, names: list[str], wanted: list[int], count: int) -> None:
        self.program, self.names, self.wanted, self.count = program, names, wanted, count

    def __call__(self, inputs: list[Value], training: bool) -> tuple[Value, ...]:
        given = dict.fromkeys(self.names)
        given.update(zip(self.names, inputs, strict=False))
        outputs: list[Value] = [None] * self.count
        for i, value in zip(self.wanted, self.program.run(given, training), strict=True):
            outputs[i] = value
        return tuple(outputs)


def _function(
    node: Node,
    proto: Any,
    arguments: Mapping[str, Any],
    opsets: Mapping[str, int],
    expansion: Expansion,
) -> _Called:
    """The body of a function, as far as the node wants its outputs."""
    wanted = [i for i in range(len(proto.output)) if node.wants(i)]
    expansion.depth += 1
    program = Program(proto.node, opsets, [proto.output[i] for i in wanted], expansion, arguments)
    expansion.depth -= 1
    return _Called(program, list(proto.input), wanted, len(proto.output))


def versions(imports: Any) -> dict[str, int]:
    """The version of each domain; "ai.onnx" is the empty name."""
    found: dict[str, int] = {}
    for each in imports:
        domain = "" if each.domain == "ai.onnx" else each.domain
        require_opset(domain, each.version)
        if found.setdefault(domain, each.version) != each.version:
            expected = f"one version of the domain {domain or 'ai.onnx'}"
            raise OnnxError("load", "opset", expected, f"{found[domain]} and {each.version}")
    return found


def _local(node: Node, proto: Any, expansion: Expansion) -> _Called:
    """A function that the file defines."""
    arguments = {a.name: _attribute(node, a, expansion) for a in proto.attribute_proto}
    declared = {*proto.attribute, *arguments}
    if unknown := sorted(node.attributes.keys() - declared):
        expected = f"attributes of the function: {', '.join(sorted(declared)) or 'none'}"
        raise node.refuse("attribute", expected, repr(unknown[0]))
    opsets = versions(proto.opset_import)
    return _function(node, proto, arguments | node.attributes, opsets, expansion)


class _Body:
    """An operator by its body in the standard, which may depend on the dtypes of the inputs."""

    def __init__(
        self, node: Node, proto: Any, schema: Any, opsets: Mapping[str, int], depth: int
    ) -> None:
        self.node, self.depth, self.opsets = node, depth, dict(opsets)
        self.proto, self.schema = proto.SerializeToString(), (node.kind, schema.since_version)
        self.made: dict[Any, _Called] = {}

    def __call__(self, inputs: list[Value], training: bool) -> tuple[Value, ...]:
        key = tuple([None if x is None else (x.dtype, x.shape) for x in inputs])
        if key not in self.made:
            while len(self.made) >= _KEPT:
                self.made.pop(next(iter(self.made)))
            self.made[key] = self._make(inputs)
        return self.made[key](inputs, training)

    def _make(self, inputs: list[Value]) -> _Called:
        schema = onnx.defs.get_schema(*self.schema, self.node.domain)
        if schema.has_function:
            known = schema.function_opset_versions
        else:
            known = schema.context_dependent_function_opset_versions
        version = max([v for v in known if v <= self.opsets.get("", v)], default=known[0])
        function = onnx.FunctionProto.FromString(self._body(schema, version, inputs))
        if not function.node:
            raise self.node.refuse("operator", "a body for these inputs", "none")
        expansion = Expansion({}, Budget(2**31))
        expansion.depth = self.depth + 1
        opsets = self.opsets | versions(function.opset_import)
        return _function(self.node, function, self.node.attributes, opsets, expansion)

    def _body(self, schema: Any, version: int, inputs: list[Value]) -> bytes:
        if schema.has_function:
            return bytes(schema.get_function_with_opset_version(version))
        types, proto = [_type(x) for x in inputs], self._with_arguments().SerializeToString()
        build = schema.get_context_dependent_function_with_opset_version
        try:
            return bytes(build(version, proto, types))
        except (RuntimeError, ValueError) as error:
            raise self.node.refuse("inputs", "some that the body takes", error) from error

    def _with_arguments(self) -> Any:
        """The NodeProto with values in the place of attributes of the function around it."""
        proto = onnx.NodeProto.FromString(self.proto)
        for attribute in [a for a in proto.attribute if a.ref_attr_name]:
            proto.attribute.remove(attribute)
            if (value := self.node[attribute.name]) is not None:
                proto.attribute.append(onnx.helper.make_attribute(attribute.name, value))
        return proto


def _type(x: Value) -> bytes:
    """The TypeProto of a value."""
    made = onnx.TypeProto()
    if x is not None:
        code = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(x.dtype))
        made = onnx.helper.make_tensor_type_proto(code, list(x.shape))
    return bytes(made.SerializeToString())
