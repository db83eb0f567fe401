"""Modules made of modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar, overload

from tinygraph.errors import ArgumentError, ShapeError, nearest
from tinygraph.nn.module import Module
from tinygraph.tensor import Operand, Tensor, as_tensor

L = TypeVar("L", bound="Numbered")


class Numbered(Module):
    """What Sequential and ModuleList share: layers with a place and a name, as attributes."""

    def put(self, named: Mapping[Any, Any]) -> None:
        """Check layers and their names, and make them attributes: "0", "1", ... are names too."""
        op = type(self).__name__
        for name, layer in named.items():
            if not isinstance(layer, Module):
                raise ArgumentError(
                    op,
                    f"layer {name}",
                    "a Module",
                    _describe(layer),
                    "an op is wrapped in its layer: nn.ReLU() for tg.relu",
                )
            if not isinstance(name, str) or not name or "." in name or hasattr(type(self), name):
                raise ArgumentError(
                    op, "name", "a word without dots that names no method", repr(name)
                )
        vars(self).update(named)
        self._name_leaves()

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Module]:
        return self.children()

    @overload
    def __getitem__(self, index: int | str) -> Module: ...
    @overload
    def __getitem__(self: L, index: slice) -> L: ...
    def __getitem__(self, index: int | str | slice) -> Module:
        """A layer by number or name; a slice is a container of the same layers and names."""
        named = dict(self.named_children())
        if isinstance(index, slice):
            part = type(self)()
            vars(part).update(list(named.items())[index])  # no new names: still part of the whole
            return part
        op = type(self).__name__
        if isinstance(index, str):
            if index not in named:
                raise ArgumentError(
                    op, "index", f"one of {list(named)}", repr(index), nearest(index, named)
                )
            return named[index]
        if not -len(named) <= index < len(named):
            raise IndexError(f"{op}: index {index} of {len(named)} layers")
        return list(named.values())[index]


class Sequential(Numbered):
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
            self.put(layers[0])
        else:
            self.put({str(i): layer for i, layer in enumerate(layers)})

    def forward(self, x: Any) -> Any:
        for layer in vars(self).values():
            if isinstance(layer, Module):
                x = layer(x)
        return x


class ModuleList(Numbered):
    """Layers in a list that is searched for parameters; what runs when, your `forward` says.

    Parameters
    ----------
    modules : iterable of Module
        They are called "0", "1", ...

    Raises
    ------
    ArgumentError
        Something is not a Module.

    Examples
    --------
    >>> import tinygraph as tg
    >>> from tinygraph import nn
    >>> class Net(nn.Module):
    ...     def __init__(self):
    ...         self.blocks = nn.ModuleList(nn.Linear(3, 3) for _ in range(4))
    ...     def forward(self, x):
    ...         for block in self.blocks:
    ...             x = tg.relu(block(x)) + x
    ...         return x
    >>> [name for name, _ in Net().named_parameters()][-1]
    'blocks.3.bias'
    """

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        self.extend(modules)

    def append(self, module: Module) -> ModuleList:
        """Put a layer at the end; returns itself."""
        return self.extend([module])

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Put several layers at the end; returns itself."""
        if isinstance(modules, Module) and not isinstance(modules, Numbered):
            raise ArgumentError(
                "ModuleList",
                "modules",
                "an iterable of Modules",
                _describe(modules),
                "pass a list: [module]",
            )
        self.put({str(i): module for i, module in enumerate(modules, start=len(self))})
        return self


class Residual(Module):
    """A residual block: what its layers make of x is added to x.

        y = x + f(x),   or   shortcut(x) + f(x)

    With normalization and activation first, f = norm - relu - conv - norm - relu - conv, it is the
    pre-activation block, in which x passes from the first block to the last unchanged.

    Parameters
    ----------
    *layers : Module
        f, one after the other.
    shortcut : Module, optional
        What x passes where f changes the shape: a convolution with kernel size 1, say.

    Attributes
    ----------
    body : Sequential
        The layers; their parameters are called "body.0.weight" and so on.
    shortcut : Module or None

    Raises
    ------
    ShapeError
        In the forward: both ways do not end in the same shape.

    References
    ----------
    He, Zhang, Ren, Sun, "Identity mappings in deep residual networks", ECCV 2016.

    Examples
    --------
    >>> import tinygraph as tg
    >>> from tinygraph import nn
    >>> block = nn.Residual(
    ...     nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 8, 3, stride=2, padding=1, bias=False),
    ...     nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1, bias=False),
    ...     shortcut=nn.Conv2d(4, 8, 1, stride=2, bias=False),
    ... )
    >>> block(tg.ones((16, 4, 6, 6))).shape
    (16, 8, 3, 3)
    """

    def __init__(self, *layers: Module, shortcut: Module | None = None) -> None:
        self.body = Sequential(*layers)
        if shortcut is not None and not isinstance(shortcut, Module):
            raise ArgumentError("Residual", "shortcut", "a Module", _describe(shortcut))
        self.shortcut = shortcut

    def forward(self, x: Operand) -> Tensor:
        x = as_tensor(x)
        y, past = self.body(x), x if self.shortcut is None else self.shortcut(x)
        if y.shape != past.shape:  # broadcasting would add them without a word
            raise ShapeError(
                "Residual",
                "x",
                f"the shape of the layers' output, {y.shape}",
                past.shape,
                "shortcut=nn.Conv2d(channels_in, channels_out, 1, stride)",
            )
        return past + y


def _describe(thing: Any) -> str:
    if isinstance(thing, type):
        return f"the class {thing.__name__}, without parentheses"
    return getattr(thing, "__name__", type(thing).__name__)
