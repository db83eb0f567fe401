"""Tree: what a module is made of, found by looking at its attributes; the base of Module.

`vars(module)` is the register of parameters, buffers and modules, in the order of assignment; there
is no other.  What `register_buffer` and its kin do is to set an attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from tinygraph.base import ArgumentError, nearest
from tinygraph.engine import Buffer, Kept, Parameter, Tensor

M = TypeVar("M", bound="Tree")
T = TypeVar("T", bound=Tensor)


class Tree:
    """Parameters, buffers and modules, as attributes of a module and of those below it."""

    def __setattr__(self, name: str, value: Any) -> None:
        _refuse_hidden(self, name, value)
        _refuse_loss(self, name, vars(self).get(name), value)
        super().__setattr__(name, value)
        if isinstance(value, (Parameter, Buffer, Tree)):
            self._name_leaves()

    # ---- what is in here --------------------------------------------------------------------

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """The modules that are attributes of this one, with the names of the attributes."""
        for name, value in vars(self).items():
            _refuse_hidden(self, name, value)
            if isinstance(value, Tree):
                yield name, value

    def children(self) -> Iterator[Any]:
        """The modules that are attributes of this one."""
        return (child for _, child in self.named_children())

    def named_modules(self) -> Iterator[tuple[str, Any]]:
        """This module as "" and all below it by dotted names, parents first, each one once."""
        seen: set[int] = set()
        stack: list[tuple[str, Any]] = [("", self)]
        while stack:
            path, module = stack.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            yield path, module
            below = [(_join(path, name), child) for name, child in module.named_children()]
            stack.extend(reversed(below))

    def modules(self) -> Iterator[Any]:
        """This module and all below it, each one once."""
        return (module for _, module in self.named_modules())

    def named_parameters(
        self, prefix: str = "", recurse: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters by dotted names, or this module's own.

        One that is shared comes once, under its first name.
        """
        return self._named_leaves(Parameter, prefix=prefix, recurse=recurse)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, each one once: what an optimiser takes."""
        return (parameter for _, parameter in self.named_parameters("", recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Buffer]]:
        """All buffers by dotted names, or this module's own, each one once."""
        return self._named_leaves(Buffer, prefix=prefix, recurse=recurse)

    def buffers(self, recurse: bool = True) -> Iterator[Buffer]:
        """All buffers, each one once."""
        return (buffer for _, buffer in self.named_buffers("", recurse))

    def get_submodule(self, target: str) -> Any:
        """The module of a dotted name; "" is this one."""
        known = dict(self.named_modules())
        if target not in known:
            raise ArgumentError(
                type(self).__name__,
                "target",
                "the name of a module",
                target,
                nearest(target, known),
            )
        return known[target]

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of a dotted name."""
        known = dict(self.named_parameters())
        if target not in known:
            expected = "the name of a parameter"
            raise ArgumentError(
                type(self).__name__, "target", expected, target, nearest(target, known)
            )
        return known[target]

    def _named_leaves(
        self, *kinds: type[T], prefix: str = "", recurse: bool = True
    ) -> Iterator[tuple[str, T]]:
        seen: set[Tensor] = set()
        for path, module in self.named_modules() if recurse else [("", self)]:
            for name, value in vars(module).items():
                if isinstance(value, kinds) and value not in seen:
                    seen.add(value)
                    yield _join(prefix, _join(path, name)), value

    def _saved_leaves(self) -> Iterator[tuple[str, Kept]]:
        """The leaves of a state_dict: parameters, and buffers that are to be saved."""
        for name, leaf in self._named_leaves(Parameter, Buffer):
            if not isinstance(leaf, Buffer) or leaf.persistent:
                yield name, leaf

    def _name_leaves(self) -> None:
        for name, leaf in self._named_leaves(Parameter, Buffer):
            leaf.name = name

    # ---- put in by name, and changed together -----------------------------------------------

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Set a buffer: `self.name = Buffer(tensor)`; None leaves its place empty.

        One that is not persistent moves with the module, but is not part of its state_dict.
        """
        setattr(self, name, None if tensor is None else Buffer(tensor, persistent=persistent))

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Set a parameter: `self.name = param`."""
        setattr(self, name, param)

    def add_module(self, name: str, module: Any) -> None:
        """Set a module: `self.name = module`."""
        setattr(self, name, module)

    register_module = add_module

    def apply(self: M, fn: Callable[[Any], Any]) -> M:
        """Call a function with each module below and with this one last; returns itself.

        >>> from tinygraph import nn
        >>> def ones(module):
        ...     if isinstance(module, nn.Linear):
        ...         nn.init.ones_(module.weight)
        >>> nn.Sequential(nn.Linear(2, 1)).apply(ones)[0].weight.tolist()
        [[1.0, 1.0]]
        """
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Whether the parameters shall get gradients; returns itself."""
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    # ---- names ------------------------------------------------------------------------------

    def _all_names(self) -> dict[str, Kept]:
        """Every parameter and buffer under every path that leads to it."""
        names: dict[str, Kept] = {}
        stack: list[tuple[str, Any, tuple[Any, ...]]] = [("", self, ())]
        while stack:
            path, module, above = stack.pop()
            for name, value in vars(module).items():
                if isinstance(value, Parameter) or (isinstance(value, Buffer) and value.persistent):
                    names[_join(path, name)] = value
            below = [(_join(path, name), child) for name, child in module.named_children()]
            way = (*above, module)  # a module that holds one of these would be walked forever
            stack.extend((p, child, way) for p, child in reversed(below) if child not in way)
        return names


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _refuse_hidden(module: Tree, name: str, value: Any) -> None:
    """Raise for a list, tuple, set or dict with modules or parameters in it."""
    if not isinstance(value, (list, tuple, set, dict)):
        return
    inside = value.values() if isinstance(value, dict) else value
    if any(isinstance(x, (Tree, Parameter, Buffer)) for x in inside):
        raise ArgumentError(
            type(module).__name__,
            name,
            "a Module, Parameter or Buffer as an attribute of its own",
            f"a {type(value).__name__} of them, in which none would be found",
            "wrap it: nn.ModuleList([...]) or nn.Sequential(...)",
        )


def _refuse_loss(module: Tree, name: str, before: Any, value: Any) -> None:
    """Raise for what would take the place of a parameter, a buffer or a module, and is none."""
    where, got = type(module).__name__, type(value).__name__
    leaves = Parameter, Buffer
    if isinstance(before, leaves) and not isinstance(value, (*leaves, type(None))):
        way_out = f"{name}.value = array for other numbers, nn.Parameter(array) for a new one"
        raise ArgumentError(where, name, "a Parameter or a Buffer, or None", got, way_out)
    if isinstance(before, Tree) and not isinstance(value, (Tree, type(None))):
        way_out = f"del module.{name}, where it shall be no layer"
        raise ArgumentError(where, name, "a Module, or None", got, way_out)
