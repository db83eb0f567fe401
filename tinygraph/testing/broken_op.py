"""The usual mistakes of a first op, told in a sentence of their own.

A forgotten `saved`, tuple, `return`, `needs` or transposition: what the engine notices
(promises.py) and what a gradient check finds.
"""

from __future__ import annotations

import math
from typing import Any

from tinygraph.engine import Shape
from tinygraph.engine.promises import BrokenOpError

PARAMETERS = {"forward": "mem, *arrays", "backward": "mem, gy, saved, needs"}


def broken_forward(op: Any, returned: Any) -> BrokenOpError:
    """Why what a forward returned is no pair of output and `saved`."""
    if returned is None:
        return BrokenOpError(_nothing(op.name, "forward", "return y, saved"))
    what = (
        f"a tuple of {len(returned)}, not"
        if isinstance(returned, tuple)
        else "its output alone, not"
    )
    return BrokenOpError(
        f"forward of {op.name} returned {what} the output with `saved`, which backward is given: "
        "write `return y, saved`, or `return y, None`"
    )


def wrong_parameters(op: Any, method: str, error: Exception) -> BrokenOpError | None:
    """Why a method could not be called."""
    if "positional argument" not in str(error):
        return None
    wanted = f"def {method}(self, {PARAMETERS[method]})"
    return BrokenOpError(
        f"{method} of {op.name} does not take the parameters that it is given: write `{wanted}` "
        f"({error})",
        "signature",
    )


def wrong_product(node: Any, grad: Any, error: Exception) -> BrokenOpError | None:
    """Why a product of matrices in backward has failed."""
    shapes = [x.shape for x in node.inputs]
    if "matmul" not in str(error) and "not aligned" not in str(error):
        return None
    words = ", ".join(map(str, shapes))
    sentence = f"backward of {node.op.name} multiplies matrices that do not fit ({error})"
    sentence += f": gy has the shape {grad.shape}, the inputs have {words}"
    return BrokenOpError(sentence + _transposed_factors(shapes, grad.shape))


def _transposed_factors(shapes: list[Shape], output: Shape) -> str:
    """The gradients of a product of two matrices, where the shapes say that it is one."""
    if len(shapes) < 2 or any(len(shape) != 2 for shape in (*shapes[:2], output)):
        return ""
    (m, k), (p, q) = shapes[:2]
    if (k, m, q) == (p, *output):
        return "; of y = a @ b they are gy @ b.T and a.T @ gy"
    if (k, m, p) == (q, *output):
        return "; of y = x @ w.T they are gy @ w and gy.T @ x"
    return ""


def _nothing(name: str, method: str, way_out: str) -> str:
    return f"{method} of {name} returned nothing: its last line has to be `{way_out}`"


def broken_gradients(node: Any, gradients: Any) -> BrokenOpError | None:
    """The first thing that is wrong with what a backward returned, before numbers are compared."""
    name, count = node.op.name, len(node.inputs)
    if gradients is None:
        return BrokenOpError(_nothing(name, "backward", "return (gx,)"))
    if not isinstance(gradients, (tuple, list)):
        got = type(gradients).__name__
        return BrokenOpError(
            f"backward of {name} returned a bare {got}, not a tuple with one gradient for each "
            "input: write `return (gx,)`"
        )
    if len(gradients) != count:
        return BrokenOpError(
            f"backward of {name} returned {len(gradients)} gradients for {count} inputs: one for "
            "each input, None for one that needs none"
        )
    for position, (x, needed, g) in enumerate(zip(node.inputs, node.needs, gradients, strict=True)):
        if not needed or g is None:
            continue
        if not hasattr(g, "shape") or not hasattr(g, "dtype"):
            return BrokenOpError(
                f"backward of {name} returned a {type(g).__name__} as the gradient of input "
                f"{position}: expected an array of shape {x.shape}"
            )
        if g.shape != x.shape:
            return BrokenOpError(wrong_shape(name, position, x.shape, g.shape, node.shape))
        if g.dtype != x.dtype:
            return BrokenOpError(
                f"wrong dtype: the gradient of input {position} of {name} is {g.dtype}, the input "
                f"is {x.dtype}; make arrays with the dtype of the input, and no constants in "
                "float64",
                "dtype",
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
