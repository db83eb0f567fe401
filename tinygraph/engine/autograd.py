"""Gradients asked for by name: `grad(outputs, inputs)`, without touching any `.grad`.

`local_gradients` is one step of the walk back: from a node to its inputs.

Derivatives are first ones.  The backward of an op computes with arrays, not with nodes, so that a
gradient has no graph of its own and cannot be differentiated again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tinygraph.base import ArgumentError, GraphError
from tinygraph.base.lazy import lazy
from tinygraph.engine.feeds import refuse_freed, upstream_of
from tinygraph.engine.graph import run_backward
from tinygraph.engine.op import differentiate
from tinygraph.engine.running import here
from tinygraph.engine.spec import Array
from tinygraph.engine.tensor import Tensor, leaf


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Any = None,
    retain_graph: bool = False,
    create_graph: bool = False,
) -> None:
    """Add the gradients of some tensors to `.grad` of every leaf below that requires one.

    Parameters
    ----------
    tensors : Tensor or sequence of Tensor
        What to differentiate; the gradients of several are added up.
    grad_tensors : array_like or sequence of them, optional
        The upstream gradient of each; a single element can do without: 1.
    retain_graph : bool
        Keep what the ops saved, so that backward can be called again.
    create_graph : bool
        False.

    Raises
    ------
    GraphError, ShapeError
        As for `Tensor.backward`.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.Tensor([1.0, 2.0], requires_grad=True)
    >>> tg.autograd.backward([x.sum(), (x * x).sum()])
    >>> x.grad
    array([3., 5.], dtype=float32)
    """
    outputs = _listed("tensors", tensors)
    run_backward(outputs, _upstream(outputs, grad_tensors), retain_graph, create_graph)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any = None,
    retain_graph: bool = False,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradient of some outputs by some inputs; no `.grad` is read or written.

    Parameters
    ----------
    outputs : Tensor or sequence of Tensor
        What to differentiate; the gradients of several are added up.
    inputs : Tensor or sequence of Tensor
        By what: leaves or nodes that require a gradient.
    grad_outputs : array_like or sequence of them, optional
        The upstream gradient of each output; a single element can do without: 1.
    retain_graph : bool
        Keep what the ops saved, so that backward can be called again.
    create_graph : bool
        False: there is no second derivative.
    allow_unused : bool
        None for an input that no output depends on, which is an error otherwise.

    Returns
    -------
    tuple of Tensor
        One leaf for each input, of its shape, dtype and device.

    Raises
    ------
    GraphError
        `create_graph` is True, an input is not below the outputs or requires no gradient, or the
        saved values were freed by an earlier backward.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.Tensor([1.0, 2.0], requires_grad=True)
    >>> tg.autograd.grad((x * x).sum(), x)
    (Tensor([2., 4.], dtype=float32),)
    >>> print(x.grad)
    None
    """
    here.top.aside("calls autograd.grad")
    sources, by = _listed("outputs", outputs), _listed("inputs", inputs)
    for x in by:
        if not x.requires_grad:
            expected, way_out = "tensors that require a gradient", "x.requires_grad_() before"
            raise GraphError("grad", "inputs", expected, "one that does not", way_out)
    found: dict[Tensor, Any] = dict.fromkeys(by)
    run_backward(sources, _upstream(sources, grad_outputs), retain_graph, create_graph, found)
    if not allow_unused and any(found[x] is None for x in by):
        place = next(i for i, x in enumerate(by) if found[x] is None)
        expected = "tensors that the outputs depend on"
        got, way_out = (
            f"one that they do not, number {place}",
            "allow_unused=True gives None for it",
        )
        raise GraphError("grad", "inputs", expected, got, way_out)
    return tuple([None if found[x] is None else leaf(found[x], x.device) for x in by])


def local_gradients(node: Tensor, upstream: Any) -> list[tuple[Tensor, Array]]:
    """One step of a walk back: what the op of a node passes on to its inputs.

    `backward` is this, node by node in reverse topological order, with the gradients of a node
    that is used several times added up before its turn.

    Parameters
    ----------
    node : Tensor
        A node with an op, below which something requires a gradient.
    upstream : array_like
        The gradient of the node, of its shape.

    Returns
    -------
    list of (Tensor, array)
        The inputs that a gradient reaches, in their order, each with its gradient: of the shape
        and dtype of the input.  An input that is used twice stands there twice.  The arrays may be
        `upstream`, a view of it, or one another's: they are not to be changed.

    Raises
    ------
    GraphError
        The node is a leaf, nothing below it requires a gradient, or an earlier backward freed what
        its op saved.
    ShapeError
        The upstream gradient has another shape.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.Tensor([1.0, 2.0], requires_grad=True)
    >>> for node, gradient in tg.autograd.local_gradients(x * x, [10.0, 1.0]):
    ...     print(node is x, gradient)
    True [10.  2.]
    True [10.  2.]
    """
    if not isinstance(node, Tensor):
        raise ArgumentError("local_gradients", "node", "a Tensor", type(node).__name__)
    array = upstream.value if isinstance(upstream, Tensor) else upstream
    (given,) = upstream_of([node], [array], create_graph=False)
    if node.op is None:
        way_out = "its gradient is the upstream gradient itself"
        raise GraphError("local_gradients", "node", "a node with an op", "a leaf", way_out)
    refuse_freed([node])
    with np.errstate(all="ignore"):  # inf and nan are results, not accidents
        return differentiate(node, given)


def _listed(argument: str, tensors: Any) -> list[Tensor]:
    alone = isinstance(tensors, Tensor) or not isinstance(tensors, Iterable)
    listed = [tensors] if alone else list(tensors)
    if not listed or not all(isinstance(x, Tensor) for x in listed):
        got = [type(x).__name__ for x in listed]
        raise ArgumentError("autograd", argument, "a Tensor, or several", got)
    return listed


def _upstream(outputs: Sequence[Tensor], given: Any) -> list[Any]:
    """One upstream gradient for each output, None for 1."""
    if given is None:
        return [None] * len(outputs)
    several = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(several) != len(outputs):
        raise ArgumentError("autograd", "gradients", f"{len(outputs)} of them", len(several))
    return [x.value if isinstance(x, Tensor) else x for x in several]


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, {}, "autograd")
