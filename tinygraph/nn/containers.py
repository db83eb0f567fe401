"""Modules made of modules."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any, ClassVar, TypeVar, overload

import numpy as np

from tinygraph.base import ArgumentError, ShapeError, nearest
from tinygraph.engine import CPU, Operand, Parameter, Tensor, as_tensor
from tinygraph.nn.inputs import as_input, device_of_leaves
from tinygraph.nn.module import Module

L = TypeVar("L", bound="Numbered")


class Container(Module):
    """What the containers share: members with names, as attributes, in an order."""

    holds: ClassVar[type] = Module

    def put(self, named: Mapping[Any, Any]) -> None:
        """Check members and their names, and make them attributes: "0", "1", ... are names too."""
        op, kind = type(self).__name__, self.holds.__name__
        what, way_out = "layer", "an op is wrapped in its layer: nn.ReLU() for tg.relu"
        if self.holds is Parameter:
            what, way_out = "parameter", "nn.Parameter(array)"
        for name, member in named.items():
            if not isinstance(member, self.holds):
                raise ArgumentError(op, f"{what} {name}", f"a {kind}", _describe(member), way_out)
            if not isinstance(name, str) or not name or "." in name or hasattr(type(self), name):
                raise ArgumentError(
                    op, "name", "a word without dots that names no method", repr(name)
                )
        vars(self).update(named)
        self._name_leaves()

    def members(self) -> dict[str, Any]:
        """By name, in their order."""
        return {name: x for name, x in vars(self).items() if isinstance(x, self.holds)}

    def __len__(self) -> int:
        return len(self.members())

    def find(self, name: Any) -> Any:
        """The member of that name."""
        named = self.members()
        if name not in named:
            expected, hint = f"one of {list(named)}", nearest(str(name), named)
            raise ArgumentError(type(self).__name__, "index", expected, repr(name), hint)
        return named[name]


class Numbered(Container):
    """Members with a place: a list.  A name that is a number is that of the place."""

    def __iter__(self) -> Iterator[Any]:
        return iter(self.members().values())

    @overload
    def __getitem__(self, index: int | str) -> Any: ...
    @overload
    def __getitem__(self: L, index: slice) -> L: ...
    def __getitem__(self, index: int | str | slice) -> Any:
        """A member by number or name; a slice is a container of the same members and names."""
        if isinstance(index, str):
            return self.find(index)
        if isinstance(index, slice):
            part = type(self)()
            vars(part).update(list(self.members().items())[index])  # still part of the whole
            return part
        return self._at(index)[1]

    def __setitem__(self, index: int | str, member: Any) -> None:
        """Another member in that place, under the same name."""
        if isinstance(index, str):
            self.find(index)
        self.put({index if isinstance(index, str) else self._at(index)[0]: member})

    def __delitem__(self, index: int | slice) -> None:
        """Leave members out; those behind move up."""
        items = list(self.members().items())
        if not isinstance(index, slice):
            self._at(index)
        del items[index]
        self._place(items)

    def __add__(self: L, members: Iterable[Any]) -> L:
        """A new container, of these members and of others behind them."""
        return type(self)().extend([*self, *members])

    def append(self: L, member: Any) -> L:
        """Put a member at the end; returns itself."""
        return self.extend([member])

    def extend(self: L, members: Iterable[Any]) -> L:
        """Put several members at the end; returns itself."""
        if isinstance(members, Module) and not isinstance(members, Numbered):
            raise ArgumentError(
                type(self).__name__,
                "modules",
                "an iterable of Modules",
                _describe(members),
                "pass a list: [module]",
            )
        self.put({str(i): member for i, member in enumerate(members, start=len(self))})
        return self

    def insert(self: L, index: int, member: Any) -> L:
        """Put a member before that place, as in a list; returns itself."""
        items = list(self.members().items())
        items.insert(index, ("0", member))
        self._place(items)
        return self

    def pop(self, index: int = -1) -> Any:
        """Take a member out."""
        found = self[index]
        del self[index]
        return found

    def _at(self, index: int) -> tuple[str, Any]:
        items = list(self.members().items())
        if not -len(items) <= index < len(items):
            raise IndexError(f"{type(self).__name__}: index {index} of {len(items)} members")
        return items[index]

    def _place(self, items: list[tuple[str, Any]]) -> None:
        """These members in this order, numbers made anew."""
        named = {str(i) if n.isdigit() else n: member for i, (n, member) in enumerate(items)}
        before = self.members()
        for name in before:
            del vars(self)[name]
        try:
            self.put(named)
        except ArgumentError:
            self.put(before)
            raise


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
    >>> net.insert(2, nn.Dropout(0.1))[2], len(net.append(nn.Sigmoid()))
    (Dropout(p=0.1), 5)
    """

    def __init__(self, *layers: Module | Mapping[str, Module]) -> None:
        if len(layers) == 1 and isinstance(layers[0], Mapping):
            self.put(layers[0])
        else:
            self.put({str(i): layer for i, layer in enumerate(layers)})

    def forward(self, x: Any) -> Any:
        if isinstance(x, np.ndarray) and (device := device_of_leaves(self)) is not CPU:
            x = as_tensor(x, device=device)  # the first layer may have nothing that lies there
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


class ParameterList(Numbered):
    """Parameters in a list that is searched, as ModuleList is one of modules.

    Parameters
    ----------
    values : iterable of Parameter
        They are called "0", "1", ...

    Examples
    --------
    >>> from tinygraph import nn
    >>> scales = nn.ParameterList([nn.Parameter([1.0]), nn.Parameter([2.0])])
    >>> [p.item() for p in scales], list(scales.state_dict())
    ([1.0, 2.0], ['0', '1'])
    """

    holds = Parameter

    def __init__(self, values: Iterable[Parameter] = ()) -> None:
        self.extend(values)


class Named(Container):
    """Members with names: a dict."""

    def __iter__(self) -> Iterator[str]:
        return iter(self.members())

    def __contains__(self, name: object) -> bool:
        return name in self.members()

    def __getitem__(self, name: str) -> Any:
        return self.find(name)

    def __setitem__(self, name: str, member: Any) -> None:
        self.put({name: member})

    def __delitem__(self, name: str) -> None:
        self.find(name)
        del vars(self)[name]

    def keys(self) -> KeysView[str]:
        """The names."""
        return self.members().keys()

    def values(self) -> ValuesView[Any]:
        """The members."""
        return self.members().values()

    def items(self) -> ItemsView[str, Any]:
        """Names and members."""
        return self.members().items()

    def update(self, named: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Put several in."""
        self.put(dict(named))

    def pop(self, name: str) -> Any:
        """Take a member out."""
        found = self[name]
        del self[name]
        return found

    def clear(self) -> None:
        """Take all members out."""
        for name in self.members():
            del vars(self)[name]


class ModuleDict(Named):
    """Layers in a dict that is searched for parameters; what runs when, your `forward` says.

    Parameters
    ----------
    modules : mapping from name to Module, or pairs of them
        Each is an attribute of that name too.

    Raises
    ------
    ArgumentError
        Something is not a Module, or a name contains a dot or is taken by a method.

    Examples
    --------
    >>> from tinygraph import nn
    >>> heads = nn.ModuleDict({"digit": nn.Linear(8, 10), "sign": nn.Linear(8, 1)})
    >>> heads["digit"] is heads.digit, "sign" in heads, list(heads)
    (True, True, ['digit', 'sign'])
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] = ()) -> None:
        self.update(modules)


class ParameterDict(Named):
    """Parameters in a dict that is searched, as ModuleDict is one of modules.

    Examples
    --------
    >>> from tinygraph import nn
    >>> list(nn.ParameterDict({"scale": nn.Parameter([1.0])}).named_parameters())[0][0]
    'scale'
    """

    holds = Parameter

    def __init__(
        self, values: Mapping[str, Parameter] | Iterable[tuple[str, Parameter]] = ()
    ) -> None:
        self.update(values)


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
        x = as_input(self, x)
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
