"""What a model computes for an example, as a graph that can be written down.

The model is called as it stands, on arrays: what it does with them is what the file does.  A plan
of `tg.compile` steps aside, and an op that cannot be in a file is refused before it runs, so that
saving changes no running statistics.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinygraph.base import OnnxError
from tinygraph.engine import CPU, Array, Buffer, Device, Parameter, Runner, Tensor, leaf
from tinygraph.interop.onnx.table import EVAL, WITHOUT_ONNX, refused
from tinygraph.nn import Module


class Saving(Runner):
    """Every node remembers how it was made, also under no_grad, and compiled functions run."""

    remembers = True
    plans = False

    def apply(self, op: Any, operands: tuple[Any, ...]) -> Any:
        if op.updates:
            raise refused(op, "it writes its running statistics, as in training", EVAL)
        if type(op) in WITHOUT_ONNX:
            raise refused(op, WITHOUT_ONNX[type(op)], EVAL)
        return self.below.apply(op, operands)


@dataclass(frozen=True)
class Call:
    """How a model is called: its arguments, with arrays where the inputs of the file stand.

    Attributes
    ----------
    arrays : dict from name to array
        The inputs by the names that they get in the file.
    """

    model: Callable[..., Any]
    arguments: tuple[Any, ...]  # by position
    named: Mapping[str, Any]
    arrays: dict[str, Array]
    keys: dict[str, int | str]  # for each input, where it stands among the arguments

    @property
    def device(self) -> Device:
        """Where the parameters lie, or the cpu."""
        leaves = () if not isinstance(self.model, Module) else self.model.parameters()
        return next((p.device for p in leaves), CPU)

    def run(self, arrays: Mapping[str, Array]) -> Traced:
        """Call the model with arrays in the place of those of the example."""
        arguments, named, inputs = list(self.arguments), dict(self.named), {}
        for name, key in self.keys.items():
            node = leaf(self.device.from_numpy(arrays[name]), self.device, name)
            inputs[name] = node
            if isinstance(key, int):
                arguments[key] = node
            else:
                named[key] = node
        with Saving():
            result = self.model(*arguments, **named)
        return Traced(inputs, dict(named_tensors(result, "output")), named_leaves(self.model))


@dataclass(frozen=True)
class Traced:
    """The nodes of a call: inputs and outputs by name, and the model's leaves with their names."""

    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]
    leaves: dict[Tensor, str]


def call_of(model: Any, example: Any, input_names: Any = None) -> Call:
    """A model with an example: an array, a tuple of arguments, or a dict of them by name."""
    if not callable(model):
        expected = "a Module, or a function of Tensors"
        raise OnnxError("tg.onnx.save", "model", expected, type(model).__name__)
    arguments = example if isinstance(example, tuple) else (example,)
    named: Mapping[str, Any] = {}
    if isinstance(example, Mapping):
        arguments, named = (), example
    given: dict[int | str, Any] = dict(enumerate(arguments))
    given.update(named)
    arrays = {key: as_input(value) for key, value in given.items()}
    keys = [key for key, array in arrays.items() if array is not None]
    if not keys:
        got = type(example).__name__
        expected = "an array, or a tuple or dict with arrays"
        raise OnnxError("tg.onnx.save", "example", expected, got)
    names = names_of(model, keys, input_names)
    found = {name: arrays[key] for name, key in zip(names, keys, strict=True)}
    keyed = dict(zip(names, keys, strict=True))
    return Call(model, arguments, named, found, keyed)  # type: ignore[arg-type]


def as_input(value: Any) -> Array | None:
    """The array of an input; None for an argument that is none, such as a flag."""
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    is_list = isinstance(value, list) and value
    return Tensor(value).numpy() if is_list else None


def names_of(model: Any, keys: list[int | str], given: Any) -> list[str]:
    """A name for each input: those that were given, else those of the function's arguments."""
    if given is not None:
        names = [given] if isinstance(given, str) else list(given)
        if len(names) != len(keys) or len(set(names)) < len(names):
            expected = f"{len(keys)} names, each another one"
            raise OnnxError("tg.onnx.save", "input_names", expected, names)
        return names
    function = model.forward if isinstance(model, Module) else model
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    single = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    known = [p.name for p in parameters if p.kind in single]
    places = [known[k] if isinstance(k, int) and k < len(known) else k for k in keys]
    if len(keys) == 1 and not isinstance(places[0], str):
        return ["input"]
    return [name if isinstance(name, str) else f"input_{name}" for name in places]


def named_tensors(result: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a result by name: "output", or "output_0", or the key of a dict."""
    if isinstance(result, Tensor):
        yield name, result
    elif isinstance(result, Mapping):
        for key, part in result.items():
            yield from named_tensors(part, str(key) if name == "output" else f"{name}_{key}")
    elif isinstance(result, (tuple, list)):
        for i, part in enumerate(result):
            yield from named_tensors(part, f"{name}_{i}")
    elif result is not None:
        expected, got = "Tensors, in tuples, lists or dicts", f"a {type(result).__name__}"
        raise OnnxError("tg.onnx.save", "what the model returns", expected, got)


def named_leaves(model: Any) -> dict[Tensor, str]:
    """Parameters and buffers of a module by the names of its state_dict; of a function none."""
    if not isinstance(model, Module):
        return {}
    return {node: name for name, node in model._named_leaves(Parameter, Buffer)}
