"""Copies of nodes by copy, deepcopy and pickle: however deep the graph is, and written to as any.

    deepcopy    the graph below, node by node, inputs before users; ops never change and are shared
    pickle      a list of the nodes below in that order, so that each finds its inputs known
    copy        one node more with the same value, op and inputs

Python's own way goes down from a node to its inputs, and overflows a thousand nodes below.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from tinygraph.engine import Tensor, Writes, topological_order
from tinygraph.engine.feeds import FREED


def shallow(node: Tensor) -> Any:
    """What `copy.copy(node)` gives."""
    made = type(node).__new__(type(node))
    _fill(made, _slots(node))
    return made


def deep(node: Tensor, memo: dict[int, Any]) -> Any:
    """What `copy.deepcopy(node)` gives: a graph of its own, down to the leaves."""
    for x in topological_order([node]):
        if id(x) in memo:
            continue
        if x is not node and not x.inputs:
            deepcopy(x, memo)  # parameters have a way of their own
            continue
        memo[id(x)] = made = type(x).__new__(type(x))
        _fill(made, {name: _copied(x, name, each, memo) for name, each in _slots(x).items()})
    return memo[id(node)]


def reduced(node: Tensor, protocol: Any) -> Any:
    """What pickle writes: of a leaf its slots, of a node all those below, as a list."""
    if not node.inputs:
        return object.__reduce_ex__(node, protocol)
    return _last, ([_step(x) for x in topological_order([node]) if x.inputs],)


def restore(node: Tensor, state: tuple[Any, dict[str, Any]]) -> None:
    """Be what pickle has read.

    Another process's count of writes is not that of this one.  Libraries such as joblib hand out
    memory that cannot be written to; a leaf takes memory of its own then.
    """
    own, slots = state
    _fill(node, {**(own or {}), **slots})
    if node.op is None:
        object.__setattr__(node, "value", writable(node.value))
    node.grad = writable(node.grad)
    node.written = Writes.count


def writable(array: Any) -> Any:
    """The array, or where numpy may not write to it a copy."""
    read_only = isinstance(array, np.ndarray) and not array.flags.writeable
    return np.array(array) if read_only else array


class _Step:
    """A node in a pickle, which finds its inputs among the steps before; read back, it is the node.

    A node is one step wherever it is met while it is written, so that it comes back as one.
    """

    __slots__ = ("__weakref__", "node")

    def __init__(self, node: Tensor) -> None:
        self.node = node

    def __reduce__(self) -> Any:
        slots = _slots(self.node)
        slots["inputs"] = tuple([_step(x) if x.inputs else x for x in slots["inputs"]])
        if freed := slots["saved"] is FREED:
            del slots["saved"]
        return _node, (type(self.node), slots, freed)


_steps: WeakValueDictionary[int, _Step] = WeakValueDictionary()


def _step(node: Tensor) -> _Step:
    found = _steps.get(id(node))
    if found is None:
        found = _steps[id(node)] = _Step(node)
    return found


def _node(kind: type[Tensor], slots: dict[str, Any], freed: bool) -> Tensor:
    made = kind.__new__(kind)
    restore(made, (None, {**slots, "saved": FREED} if freed else slots))
    return made


def _last(nodes: list[Tensor]) -> Tensor:
    return nodes[-1]


def _slots(node: Tensor) -> dict[str, Any]:
    """All that a node has, by name."""
    state: Any = object.__reduce_ex__(node, 2)[2]
    own, slots = state
    return {**(own or {}), **slots}


# Slots, by their names in a pickle of before.
_FORMER = {"value": "_value", "grad": "_grad", "requires_grad": "_requires_grad"}


def _fill(node: Tensor, slots: dict[str, Any]) -> None:
    for name, each in slots.items():
        object.__setattr__(node, _FORMER.get(name, name), each)  # past what looks at a value


def _copied(node: Tensor, name: str, value: Any, memo: dict[int, Any]) -> Any:
    if name == "inputs":
        return tuple([memo[id(x)] for x in value])
    if name in ("op", "device") or value is FREED:
        return value
    if name in ("_value", "_grad") and node.device.owns(value):
        return memo.setdefault(id(value), node.device.copy(value))  # saved may have it too
    return deepcopy(value, memo)
