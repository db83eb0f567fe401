"""What an op is applied to and is no node yet: an array, a number, a list."""

from __future__ import annotations

from typing import Any

from tinygraph.base.dtypes import OF_NUMBERS
from tinygraph.base.errors import GraphError
from tinygraph.base.incoming import as_numbers, is_list, lists
from tinygraph.engine.running import here
from tinygraph.engine.spec import Array


def operand(data: Any, dtype: Any) -> Array:
    """An operand of an op as numbers; GraphError where a gradient would end there in silence."""
    if is_list(data) and here.top.remembers:
        for inside in lists(data):
            kinds = set(map(type, inside))
            if kinds <= OF_NUMBERS.keys():
                continue
            if any(getattr(x, "requires_grad", False) is True for x in inside):
                got = "a list of tensors that have one, where the graph would end"
                way_out = "tg.stack([...]) makes a node of them, x.detach() has no gradient"
                raise GraphError("Tensor", "an operand", "one node for a gradient", got, way_out)
    return as_numbers(data, dtype, None)
