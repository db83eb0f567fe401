"""Hooks: functions of the user's that see a gradient on its way, or a module's inputs and output.

    handle = h.register_hook(lambda g: g.clip(-1, 1))     what it returns goes on in the place of g
    handle.remove()

They are kept in tuples: of a node in `hooks`, of a module in `_before_forward`, `_after_forward`
and `_after_backward`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinygraph.base import GraphError, ShapeError, above
from tinygraph.engine.running import here
from tinygraph.engine.spec import Array


class Handle:
    """What takes a hook away again: `remove()`, or the end of a `with` block."""

    def __init__(self, holder: Any, attribute: str, hook: Callable[..., Any]) -> None:
        self._holder, self._attribute = holder, attribute
        self._own = (hook,)  # known by identity: a function may be registered twice
        setattr(holder, attribute, (*getattr(holder, attribute), self._own))

    def remove(self) -> None:
        """The hook is not called again."""
        left = [each for each in getattr(self._holder, self._attribute) if each is not self._own]
        setattr(self._holder, self._attribute, tuple(left))

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def register_hook(node: Any, hook: Callable[[Array], Any]) -> Handle:
    """Call `hook(gradient)` in every backward that reaches this node.

    Parameters
    ----------
    hook : callable
        Takes the gradient, an array that must not be changed, and returns None, or an array of its
        shape that goes on in its place: to the inputs, or into `.grad`.

    Raises
    ------
    GraphError
        The tensor requires no gradient.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.Tensor([1.0, 2.0], requires_grad=True)
    >>> handle = x.register_hook(lambda g: 10 * g)
    >>> (x * x).sum().backward()
    >>> x.grad
    array([20., 40.], dtype=float32)
    """
    if not node.requires_grad:
        expected = "a tensor that requires a gradient"
        raise GraphError(
            "register_hook", "self", expected, "one that does not", "x.requires_grad_()"
        )
    return Handle(node, "hooks", hook)


def through_hooks(node: Any, gradient: Array) -> Array:
    """The gradient of a node after its hooks, in the order in which they were registered."""
    here.top.aside("calls a hook of a tensor")
    for (hook,) in node.hooks:
        given = hook(gradient)
        if given is None:
            continue
        array = above.taken("hook", node, given)
        if array.shape != gradient.shape:
            raise ShapeError("hook", "what it returns", f"shape {gradient.shape}", array.shape)
        gradient = array.astype(gradient.dtype, copy=False)
    return gradient
