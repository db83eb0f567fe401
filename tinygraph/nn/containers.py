"""Modules made of modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, overload

from tinygraph.errors import ArgumentError, explain, nearest
from tinygraph.nn.module import Module


class Sequential(Module):
    """Layers one after the other: each takes what the one before it returns.

    Parameters
    ----------
    *layers : Module, or one mapping from name to Module
        Without names they are called "0", "1", ...

    Raises
    ------
    ArgumentError
        Something is not a Module, or a name contains a dot or is taken by a method.

    Examples
    --------
    >>> from tinygraph import nn
    >>> net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
    >>> len(net), net[-1]
    (3, Linear(in_features=8, out_features=1, bias=True))
    >>> named = nn.Sequential({"hidden": nn.Linear(2, 8), "out": nn.Linear(8, 1)})
    >>> [name for name, _ in named.named_parameters()]
    ['hidden.weight', 'hidden.bias', 'out.weight', 'out.bias']
    """

    def __init__(self, *layers: Module | Mapping[str, Module]) -> None:
        if len(layers) == 1 and isinstance(layers[0], Mapping):
            named: dict[str, Any] = dict(layers[0])
        else:
            named = {str(i): layer for i, layer in enumerate(layers)}
        for name, layer in named.items():
            if not isinstance(layer, Module):
                raise ArgumentError(
                    explain("Sequential", f"layer {name}", "a Module", _describe(layer),
                            "an op is wrapped in its layer: nn.ReLU() for tg.relu")
                )  # fmt: skip
            if not isinstance(name, str) or not name or "." in name or hasattr(type(self), name):
                raise ArgumentError(
                    explain("Sequential", "name", "a word without dots that names no method",
                            repr(name))
                )  # fmt: skip
        vars(self).update(named)  # the attributes "0", "1", ... are the layers
        self._name_leaves()

    def forward(self, x: Any) -> Any:
        for layer in vars(self).values():
            if isinstance(layer, Module):
                x = layer(x)
        return x

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Module]:
        return self.children()

    @overload
    def __getitem__(self, index: int | str) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> Sequential: ...
    def __getitem__(self, index: int | str | slice) -> Module:
        """A layer by number or name; a slice is a Sequential of the same layers and names."""
        named = dict(self.named_children())
        if isinstance(index, slice):
            return _part(dict(list(named.items())[index]))
        if isinstance(index, str):
            if index not in named:
                raise ArgumentError(
                    explain("Sequential", "index", f"one of {list(named)}", repr(index),
                            nearest(index, named))
                )  # fmt: skip
            return named[index]
        if not -len(named) <= index < len(named):
            raise IndexError(f"Sequential: index {index} of {len(named)} layers")
        return list(named.values())[index]


def _part(named: dict[str, Module]) -> Sequential:
    """A Sequential that does not rename the parameters: they are still part of the whole."""
    part = Sequential()
    vars(part).update(named)
    return part


def _describe(thing: Any) -> str:
    if isinstance(thing, type):
        return f"the class {thing.__name__}, without parentheses"
    return getattr(thing, "__name__", type(thing).__name__)
