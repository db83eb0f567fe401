"""Calls that are wrong, each with the error and the words that it must raise.

A right call is drawn, and one thing about it is spoilt.  The mistakes are those of a family of ops,
not of one op: any convolution has to refuse a weight with too many channels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tinygraph.base import ArgumentError, DtypeError, ShapeError
from tinygraph.testing.problem import Bad, Problem
from tinygraph.testing.strategies.calls import (
    axis_problems,
    broadcastable_problems,
    elementwise_problems,
    linear_problems,
)
from tinygraph.testing.strategies.losses import class_label_problems, same_shape_problems
from tinygraph.testing.strategies.windows import as_pair, conv_problems, pool_problems


def _dtypes(problem: Problem, *dtypes: str) -> Iterator[Bad]:
    """The first argument in dtypes that no float op takes."""
    x, *rest = problem.args
    for dtype in dtypes:
        yield Bad(dtype, (np.zeros(x.shape, dtype), *rest), problem.kwargs, DtypeError, dtype)


def _half(problem: Problem) -> Bad:
    """All arguments in float16: beside another float it would be promoted."""
    half = tuple([a.astype(np.float16) for a in problem.args])
    return Bad("float16", half, problem.kwargs, DtypeError, "float16")


def _keywords(problem: Problem, **values: Any) -> Iterator[Bad]:
    """A keyword with a value that cannot be."""
    for name, value in values.items():
        kwargs = {**problem.kwargs, name: value}
        yield Bad(f"{name} {value!r}", problem.args, kwargs, ArgumentError, name)


def _elementwise(problem: Problem) -> Iterator[Bad]:
    yield from _dtypes(problem, "int64", "float16", "bool")


def _broadcast(problem: Problem) -> Iterator[Bad]:
    yield _half(problem)
    x, _ = problem.args
    if x.ndim:
        x = np.concatenate([x, x], axis=-1)
        y = np.ones(x.shape[-1] + 1)
        yield Bad("shapes", (x, y), problem.kwargs, ShapeError, f"{x.shape} and {y.shape}")


def _axis(problem: Problem) -> Iterator[Bad]:
    ndim = problem.args[0].ndim
    for name, axis, error, words in (
        ("axis beyond", ndim, ShapeError, f"from {-ndim} to {ndim - 1}"),
        ("an axis twice", (0, -ndim), ShapeError, "each axis once"),
        ("axis 0.5", 0.5, DtypeError, "axis"),
    ):
        yield Bad(name, problem.args, {**problem.kwargs, "axis": axis}, error, words)


def _weights(problem: Problem) -> Iterator[Bad]:
    """What linear and convolution have in common."""
    x, w, b = problem.args
    yield from _dtypes(problem, "int64")
    single = (x, w.astype(np.float32), b)
    yield Bad("dtypes differ", single, problem.kwargs, DtypeError, "float64")
    yield Bad("bias", (x, w, np.ones(len(w) + 1)), problem.kwargs, ShapeError, f"({len(w)},)")


def _linear(problem: Problem) -> Iterator[Bad]:
    yield from _weights(problem)
    x, w, b = problem.args
    x = np.concatenate([x, x], axis=-1)
    yield Bad("features", (x, w, b), problem.kwargs, ShapeError, f"{x.shape[-1]}")


def _window(problem: Problem) -> Iterator[Bad]:
    """What convolution and pooling have in common."""
    x, *rest = problem.args
    yield Bad("three axes", (x[0], *rest), problem.kwargs, ShapeError, "4 axes")
    yield from _keywords(problem, stride=0)
    yield from _keywords(problem, stride=(1, 2, 3))


def _conv(problem: Problem) -> Iterator[Bad]:
    yield from _weights(problem)
    yield from _window(problem)
    x, w, b = problem.args
    more = np.concatenate([w, w], axis=1)
    yield Bad("too many channels", (x, more, b), problem.kwargs, ShapeError, "channels")
    yield from _keywords(problem, padding="wrong", dilation=0, groups=0)
    yield from _keywords(problem, padding=-1)


def _pool(problem: Problem) -> Iterator[Bad]:
    yield from _dtypes(problem, "int64")
    yield from _window(problem)
    beyond = {"kernel_size": max(problem.args[0].shape[2:]) + 2 * 3 + 1, "padding": 0}
    kwargs = {**problem.kwargs, **beyond}
    yield Bad("kernel larger than the image", problem.args, kwargs, ShapeError, "pixels")
    kwargs = {**problem.kwargs, "padding": max(as_pair(problem.kwargs["kernel_size"]))}
    yield Bad("padding beyond half a kernel", problem.args, kwargs, ArgumentError, "padding")
    yield from _keywords(problem, kernel_size=0)


def _regression(problem: Problem) -> Iterator[Bad]:
    x, y = problem.args
    wrong = np.ones((*y.shape[:-1], y.shape[-1] + 1))
    yield Bad("another shape", (x, wrong), problem.kwargs, ShapeError, f"{wrong.shape}")
    yield _half(problem)
    yield from _keywords(problem, reduction="max")


def _classes(problem: Problem) -> Iterator[Bad]:
    yield from _dtypes(problem, "int64")
    yield from _keywords(problem, reduction="max")
    logits, labels = problem.args
    if labels.dtype.kind == "i":
        classes, wrong = logits.shape[1], labels.copy()
        wrong[(0,) * wrong.ndim] = classes
        yield Bad("label beyond", (logits, wrong), problem.kwargs, ArgumentError, f"{classes}")
        more = np.concatenate([labels, labels])
        yield Bad("labels of more samples", (logits, more), problem.kwargs, ShapeError, "labels")


# Family -> the strategy of right calls, and what can be wrong about one.
Family = tuple[Callable[[], st.SearchStrategy[Problem]], Callable[[Problem], Iterator[Bad]]]
FAMILIES: dict[str, Family] = {
    "elementwise": (elementwise_problems, _elementwise),
    "broadcast": (broadcastable_problems, _broadcast),
    "axis": (axis_problems, _axis),
    "linear": (linear_problems, _linear),
    "conv": (conv_problems, _conv),
    "pool": (pool_problems, _pool),
    "regression": (same_shape_problems, _regression),
    "classes": (class_label_problems, _classes),
}


def error_problems(family: str) -> st.SearchStrategy[Bad]:
    """Calls that every op of a family has to refuse, by an error of tinygraph's and its words.

    Parameters
    ----------
    family : str
        "elementwise" (one float array), "broadcast" (two), "axis" (a reduction), "linear", "conv",
        "pool", "regression" (a loss of two arrays of one shape), "classes" (a loss of logits and
        labels).  Arguments have the names that tinygraph's own ops give them.

    Returns
    -------
    strategy of Bad
        `.args`, `.kwargs`: the call; `.error`, `.words`: the class, and a part of its message.

    Raises
    ------
    ArgumentError
        There is no such family.

    Examples
    --------
    >>> import tinygraph as tg
    >>> from hypothesis import find
    >>> bad = find(error_problems("pool"), lambda bad: bad.name == "stride 0")
    >>> bad.args[0].shape, bad.error.__name__, bad.words
    ((1, 1, 1, 1), 'ArgumentError', 'stride')
    """
    if family not in FAMILIES:
        raise ArgumentError("error_problems", "family", f"one of {[*FAMILIES]}", repr(family))
    right, mistakes = FAMILIES[family]
    return right().flatmap(lambda problem: st.sampled_from([*mistakes(problem)]))
