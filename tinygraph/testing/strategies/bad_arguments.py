"""Calls that are wrong, each with the error and the words that it must raise.

A right call is drawn, and one thing about it is spoilt.  The mistakes are those of a family of ops,
not of one op: any convolution has to refuse a weight with too many channels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tinygraph.errors import ArgumentError, DtypeError, ShapeError
from tinygraph.testing.problem import Bad, Problem
from tinygraph.testing.strategies.calls import (
    axis_problems,
    broadcastable_problems,
    elementwise_problems,
    linear_problems,
)
from tinygraph.testing.strategies.losses import class_label_problems, same_shape_problems
from tinygraph.testing.strategies.windows import as_pair, conv_problems, pool_problems

Spoil = Callable[[Problem], "Bad | None"]  # None where this call cannot be spoilt that way


def _dtype(dtype: Any, name: str) -> Spoil:
    """The first argument in a dtype that no float op takes."""

    def spoil(problem: Problem) -> Bad:
        first = np.zeros(problem.args[0].shape, dtype)
        return Bad(name, (first, *problem.args[1:]), problem.kwargs, DtypeError, name)

    return spoil


def _mixed(problem: Problem) -> Bad:
    x, w, *rest = problem.args
    return Bad(
        "dtypes differ", (x, w.astype(np.float32), *rest), problem.kwargs, DtypeError, "float64"
    )


def _argument(name: str, value: Any, error: type[Exception], words: str = "") -> Spoil:
    """A keyword with a value that cannot be."""

    def spoil(problem: Problem) -> Bad:
        kwargs = {**problem.kwargs, name: value}
        return Bad(f"{name} {value!r}", problem.args, kwargs, error, words or name)

    return spoil


def _fewer_axes(problem: Problem) -> Bad:
    x, *rest = problem.args
    return Bad("three axes", (x[0], *rest), problem.kwargs, ShapeError, "4 axes")


def _channels(problem: Problem) -> Bad:
    x, w, b = problem.args
    more = np.concatenate([w, w], axis=1)
    return Bad("too many channels", (x, more, b), problem.kwargs, ShapeError, "channels")


def _bias(problem: Problem) -> Bad:
    x, w, _ = problem.args
    return Bad("bias", (x, w, np.ones(len(w) + 1)), problem.kwargs, ShapeError, f"({len(w)},)")


def _kernel_beyond(problem: Problem) -> Bad:
    """A window that does not fit on the padded image."""
    side = max(problem.args[0].shape[2:]) + 2 * 3 + 1
    kwargs = {**problem.kwargs, "kernel_size": side, "padding": 0}
    return Bad("kernel larger than the image", problem.args, kwargs, ShapeError, "pixels")


def _padding_beyond(problem: Problem) -> Bad:
    kernel = max(as_pair(problem.kwargs["kernel_size"]))
    kwargs = {**problem.kwargs, "padding": kernel}
    return Bad("padding beyond half a kernel", problem.args, kwargs, ArgumentError, "padding")


def _all_half(problem: Problem) -> Bad:
    args = tuple([a.astype(np.float16) for a in problem.args])
    return Bad("float16", args, problem.kwargs, DtypeError, "float16")


def _no_broadcast(problem: Problem) -> Bad | None:
    x, y = problem.args
    if not x.ndim:
        return None
    x, y = np.concatenate([x] * 2, axis=-1), np.ones(2 * x.shape[-1] + 1)
    return Bad("shapes", (x, y), problem.kwargs, ShapeError, f"{x.shape} and {y.shape}")


def _features(problem: Problem) -> Bad:
    x, w, b = problem.args
    return Bad(
        "features",
        (np.concatenate([x, x], axis=-1), w, b),
        problem.kwargs,
        ShapeError,
        f"{2 * x.shape[-1]}",
    )


def _axis_beyond(problem: Problem) -> Bad:
    ndim = problem.args[0].ndim
    kwargs = {**problem.kwargs, "axis": ndim}
    return Bad("axis beyond", problem.args, kwargs, ShapeError, f"from {-ndim} to {ndim - 1}")


def _axis_twice(problem: Problem) -> Bad:
    kwargs = {**problem.kwargs, "axis": (0, -problem.args[0].ndim)}
    return Bad("an axis twice", problem.args, kwargs, ShapeError, "each axis once")


def _label_beyond(problem: Problem) -> Bad | None:
    logits, labels = problem.args
    if labels.dtype.kind != "i":
        return None
    wrong = labels.copy()
    wrong[(0,) * wrong.ndim] = logits.shape[1]
    return Bad("label beyond", (logits, wrong), problem.kwargs, ArgumentError, f"{logits.shape[1]}")


def _more_labels(problem: Problem) -> Bad | None:
    logits, labels = problem.args
    if labels.dtype.kind != "i":
        return None
    more = np.concatenate([labels, labels])
    return Bad("labels of more samples", (logits, more), problem.kwargs, ShapeError, "labels")


def _other_shape(problem: Problem) -> Bad | None:
    x, y = problem.args
    wrong = np.ones((*y.shape[:-1], y.shape[-1] + 1))
    return Bad("another shape", (x, wrong), problem.kwargs, ShapeError, f"{wrong.shape}")


_INTEGERS, _HALF = _dtype(np.int64, "int64"), _dtype(np.float16, "float16")
_STRIDE = (_argument("stride", 0, ArgumentError), _argument("stride", (1, 2, 3), ArgumentError))
_REDUCTION = _argument("reduction", "max", ArgumentError)

# Family -> the strategy of right calls, and what can be wrong about one.
FAMILIES: dict[str, tuple[Callable[[], st.SearchStrategy[Problem]], tuple[Spoil, ...]]] = {
    "elementwise": (elementwise_problems, (_INTEGERS, _HALF, _dtype(bool, "bool"))),
    "broadcast": (broadcastable_problems, (_all_half, _no_broadcast)),
    "axis": (axis_problems, (_axis_beyond, _axis_twice, _argument("axis", 0.5, DtypeError))),
    "linear": (linear_problems, (_INTEGERS, _mixed, _features, _bias)),
    "conv": (
        conv_problems,
        (
            _INTEGERS,
            _mixed,
            _fewer_axes,
            _channels,
            _bias,
            *_STRIDE,
            _argument("padding", "valid", ArgumentError),
            _argument("padding", -1, ArgumentError),
            _argument("dilation", 0, ArgumentError),
            _argument("groups", 0, ArgumentError),
        ),
    ),
    "pool": (
        pool_problems,
        (
            _INTEGERS,
            _fewer_axes,
            *_STRIDE,
            _kernel_beyond,
            _padding_beyond,
            _argument("kernel_size", 0, ArgumentError),
        ),
    ),
    "regression": (same_shape_problems, (_HALF, _REDUCTION, _other_shape)),
    "classes": (class_label_problems, (_INTEGERS, _REDUCTION, _label_beyond, _more_labels)),
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
    return _spoilt(right(), mistakes)


@st.composite
def _spoilt(draw: st.DrawFn, right: st.SearchStrategy[Problem], mistakes: tuple[Spoil, ...]) -> Bad:
    problem = draw(right)
    made = [spoil(problem) for spoil in mistakes]
    return draw(st.sampled_from([bad for bad in made if bad is not None]))
