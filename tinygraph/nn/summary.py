"""The table behind `Module.summary`: one real forward of a batch of one, watched at every module.

The forward runs in evaluation mode without gradients, so that it draws no random numbers and moves
no running statistics.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tinygraph.base import ArgumentError, TinygraphError
from tinygraph.base.text_table import aligned
from tinygraph.engine import Kept, Parameter, Runner, Shape, Tensor, no_grad

Module: TypeAlias = Any  # nn.Module: module.py stands above this file and calls it


@dataclass
class _Row:
    """One call of one module."""

    name: str
    layer: str
    output: str = ""
    parameters: str = "0"
    bytes_out: int = 0


class _Watcher(Runner):
    """Collects a row for each call, and knows the module in which an error arose first."""

    def __init__(self, model: Module) -> None:
        self.rows: list[_Row] = []
        self.counted: set[Tensor] = set()
        self.called: set[int] = set()
        self.names = {id(module): name for name, module in model.named_modules()}
        self.failed: BaseException | None = None

    def call(self, module: Module, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if id(module) not in self.names:  # made on the way
            return self.below.call(module, inputs, options)
        row = self.enter(module)
        try:
            output = self.below.call(module, inputs, options)
        except Exception as error:
            if error is self.failed:
                raise
            raise self.explained(module, inputs, error) from error
        if row is not None:
            row.output = _shapes(output)
            row.bytes_out = sum(t.value.nbytes for t in _tensors(output))
        return output

    def enter(self, module: Module) -> _Row | None:
        """A new row, for a layer and for a module with parameters of its own beside its layers."""
        self.called.add(id(module))
        if not _own_parameters(module) and next(module.children(), None) is not None:
            return None
        row = _Row(self.names[id(module)] or "-", type(module).__name__)
        row.parameters = self.count(module)
        self.rows.append(row)
        return row

    def count(self, module: Module) -> str:
        """The number of the module's own parameters; those of an earlier row are shared."""
        own = _own_parameters(module)
        new = [p for p in own if p not in self.counted]
        self.counted.update(new)
        number = f"{sum(map(_number, new)):,}"
        return number if len(new) == len(own) else f"{number} (shared)"

    def explained(self, module: Module, inputs: Any, error: Exception) -> Exception:
        """The same error with the name of the layer and what it was given."""
        name = self.names[id(module)]
        layer = repr(module) if next(module.children(), None) is None else type(module).__name__
        where = f"layer {name!r}, {layer}" if name else layer
        message = f"summary: {where}, given {_shapes(inputs)}: {error}"
        if isinstance(error, TinygraphError):
            self.failed = type(error)(message)
            return self.failed
        self.failed = ArgumentError(
            f"summary: {where}, given {_shapes(inputs)}: {type(error).__name__}: {error}"
        )
        return self.failed


def summarize(model: Module, input_shape: Shape, dtype: Any) -> str:
    """Run the model on zeros and draw up the table."""
    x = _zeros(model, input_shape, dtype)
    watcher = _Watcher(model)
    with no_grad(), model.evaluating(), watcher:
        output = model(x)
    for name, module in model.named_modules():
        if id(module) not in watcher.called and _own_parameters(module):
            row = _Row(name, type(module).__name__, "not called", watcher.count(module))
            watcher.rows.append(row)
    head = f"{type(model).__name__}: {_shapes(x)} {x.dtype} -> {_shapes(output)} {_dtypes(output)}"
    return "\n".join([head.rstrip(), *_table(watcher.rows), *_totals(model, watcher.rows)])


def _own_parameters(module: Module) -> list[Parameter]:
    """The parameters that are attributes of this module itself."""
    return list(dict.fromkeys(v for v in vars(module).values() if isinstance(v, Parameter)))


def _zeros(model: Module, input_shape: Shape, dtype: Any) -> Tensor:
    try:
        shape = tuple(operator.index(n) for n in input_shape)
    except TypeError:
        shape = (-1,)
    if any(n < 0 for n in shape):
        raise ArgumentError(
            "summary",
            "input_shape",
            "the shape of one sample, a tuple of ints",
            repr(input_shape),
            "leave the batch axis out: (1, 28, 28)",
        )
    first = next(model.parameters(), None)
    device = None if first is None else first.device
    return Tensor(np.zeros((1, *shape), dtype), device=device, name="input")


def _tensors(value: Any) -> list[Tensor]:
    """The tensors of an output: itself, or those in a tuple, list or dict."""
    if isinstance(value, Tensor):
        return [value]
    inside = value.values() if isinstance(value, dict) else value
    inside = inside if isinstance(value, (tuple, list, dict)) else ()
    return [t for v in inside for t in _tensors(v)]


def _shapes(value: Any) -> str:
    """Shapes with N for a batch axis of one."""
    shapes = []
    for t in _tensors(value):
        batch = "N" if t.ndim and t.shape[0] == 1 else None
        axes = [batch or str(t.shape[0]), *map(str, t.shape[1:])] if t.ndim else []
        shapes.append(f"({', '.join(axes)}{',' if len(axes) == 1 else ''})")
    return ", ".join(shapes) or "no tensor"


def _dtypes(value: Any) -> str:
    return ", ".join(dict.fromkeys(str(t.dtype) for t in _tensors(value)))


def _table(rows: list[_Row]) -> list[str]:
    heads = ("name", "layer", "output shape", "parameters")
    cells = [heads, *((r.name, r.layer, r.output, r.parameters) for r in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return aligned([heads, ["-" * width for width in widths], *cells[1:]], left=(0, 1, 2))


def _totals(model: Module, rows: list[_Row]) -> list[str]:
    parameters, buffers = list(model.parameters()), list(model.buffers())
    trainable = sum(_number(p) for p in parameters if p.requires_grad)
    return [
        f"parameters: {sum(map(_number, parameters)):,} ({_size(parameters)}), "
        f"{trainable:,} of them trainable",
        f"buffers: {sum(b.size for b in buffers):,} ({_size(buffers)})",
        f"layer outputs: {_bytes(sum(row.bytes_out for row in rows))} for each sample",
    ]


def _number(leaf: Kept) -> int:
    """How many numbers a leaf has; where it is split among ranks, those of all parts."""
    return math.prod(leaf.whole_shape)


def _size(leaves: Any) -> str:
    return _bytes(sum(_number(leaf) * leaf.dtype.itemsize for leaf in leaves))


def _bytes(number: int) -> str:
    """A number of bytes for people.

    >>> _bytes(512), _bytes(54_440)
    ('512 B', '53.2 KiB')
    """
    units = ("B", "KiB", "MiB", "GiB", "TiB")
    power = min(int(math.log(number, 1024)), len(units) - 1) if number else 0
    return f"{number} B" if not power else f"{number / 1024**power:.1f} {units[power]}"
