"""What is wrong with the things that a backward returned, before any number is compared."""

from __future__ import annotations

import math
from typing import Any

from tinygraph.shapes import Shape
from tinygraph.tensor import Tensor


def broken_contract(node: Tensor | None, gradients: Any) -> tuple[str, str] | None:
    """The stage and the sentence for the first gradient that is not like its input, or None."""
    if node is None:
        return None
    name, count = node.op.name, len(node.inputs)
    if not isinstance(gradients, (tuple, list)):
        got = type(gradients).__name__
        return "shapes", (
            f"backward of {name} returned a bare {got}, not a tuple with one gradient for each "
            "input: write `return (gx,)`"
        )
    if len(gradients) != count:
        return "shapes", (
            f"backward of {name} returned {len(gradients)} gradients for {count} inputs: one for "
            "each input, None for one that needs none"
        )
    for position, (x, needed, g) in enumerate(zip(node.inputs, node.needs, gradients, strict=True)):
        if not needed or g is None:
            continue
        if not hasattr(g, "shape") or not hasattr(g, "dtype"):
            return "shapes", (
                f"backward of {name} returned a {type(g).__name__} as the gradient of input "
                f"{position}: expected an array of shape {x.shape}"
            )
        if g.shape != x.shape:
            return "shapes", wrong_shape(name, position, x.shape, g.shape, node.shape)
        if g.dtype != x.dtype:
            return "dtype", (
                f"wrong dtype: the gradient of input {position} of {name} is {g.dtype}, the input "
                f"is {x.dtype}; make arrays with the dtype of the input, and no constants in "
                "float64"
            )
    return None


def wrong_shape(name: str, position: int, expected: Shape, got: Shape, output: Shape) -> str:
    """Why a gradient may have another shape than its input.

    >>> wrong_shape("add", 1, (4,), (3, 4), (3, 4))
    'wrong shape: the gradient of input 1 of add has the shape (3, 4), the input has (4,); the \
broadcast was not summed: sum the gradient over axis 0'
    >>> wrong_shape("linear", 1, (4, 3), (3, 4), (2, 4))
    'wrong shape: the gradient of input 1 of linear has the shape (3, 4), the input has (4, 3); \
it is transposed'
    """
    start = (
        f"wrong shape: the gradient of input {position} of {name} has the shape {got}, the input "
        f"has {expected}; "
    )
    axes = _summed_axes(expected, got)
    if axes:
        word = "axis" if len(axes) == 1 else "axes"
        which = ", ".join(map(str, axes))
        return f"{start}the broadcast was not summed: sum the gradient over {word} {which}"
    if len(got) == len(expected) and sorted(got) == sorted(expected):
        return start + "it is transposed"
    if math.prod(got) == math.prod(expected):
        return start + "it has as many elements: reshape it to the shape of the input"
    if got == output:
        return start + "that is the shape of the output"
    summed = _summed_axes(got, expected)
    if summed:
        return f"{start}it was summed over {', '.join(map(str, summed))}, the input was not"
    return start + "a gradient has the shape of its input"


def _summed_axes(small: Shape, large: Shape) -> tuple[int, ...]:
    """The axes of `large` along which `small` would be broadcast; () where it would not fit."""
    added = len(large) - len(small)
    if added < 0 or any(n not in (1, m) for n, m in zip(small, large[added:], strict=True)):
        return ()
    spread = [a + added for a, n in enumerate(small) if n == 1 != large[a + added]]
    return (*range(added), *spread)
