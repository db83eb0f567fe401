"""Arguments under the names that PyTorch and numpy have for them: `dim` is `axis`, `input` is `x`.

    tg.sum(x, axis=1, keepdims=True)
    tg.sum(input=x, dim=1, keepdim=True)        the same

A function is written with our names; `inspect.signature` and the documentation show these.  Where
it is exported it learns the other words, so that a new function knows them by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from tinygraph.base import ArgumentError

# A word, and the parameters that it may stand for: the first one that a function has.
WORDS = {
    "axis": ("dim",),
    "bias": ("b",),
    "dim": ("axis",),
    "input": ("x", "logits", "log_probabilities"),
    "keepdim": ("keepdims",),
    "keepdims": ("keepdim",),
    "other": ("y",),
    "shape": ("size",),
    "target": ("y", "labels"),
    "weight": ("w",),
}

# Functions that take `inplace` in PyTorch.  It saves memory there; here it changes nothing.
INPLACE = {
    *("alpha_dropout", "celu", "dropout", "dropout1d", "dropout2d", "elu", "hardsigmoid"),
    *("hardswish", "hardtanh", "leaky_relu", "mish", "relu", "relu6", "selu", "silu", "threshold"),
}

# What is a word of one function alone.
WORDS_OF: dict[str, dict[str, str]] = {
    "arange": {"stop": "end"},
    "cosine_similarity": {"x1": "x", "x2": "y"},
    "embedding": {"input": "indices"},
    "expand": {"size": "shape"},
    "flip": {"dims": "axis"},
    "gather": {"index": "indices"},
    "heaviside": {"values": "value"},
    "bmm": {"mat2": "y"},
    "dot": {"tensor": "y"},
    "linspace": {"stop": "end", "num": "steps"},
    "matmul": {"other": "w"},
    "mm": {"mat2": "y"},
    "mv": {"vec": "y"},
    "one_hot": {"tensor": "labels"},
    "outer": {"vec2": "y"},
    "max": {"other": "axis"},
    "min": {"other": "axis"},
    "permute": {"axes": "dims"},
    "pow": {"exponent": "y"},
    "roll": {"dims": "axis"},
    "split": {
        "split_size": "size_or_sizes",
        "split_size_or_sections": "size_or_sizes",
        "tensor": "x",
    },
    "tile": {"reps": "dims"},
    "transpose": {"axis0": "dim0", "axis1": "dim1"},
    "where": {"input": "a", "other": "b"},
}


def words_of(function: Callable[..., Any]) -> dict[str, str]:
    """Each word that is not the function's own, and the parameter that it stands for.

    >>> def softmax(x, axis=-1): ...
    >>> words_of(softmax)
    {'dim': 'axis', 'input': 'x'}
    """
    code = function.__code__
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    meant = {word: [p for p in parameters if p in own] for word, parameters in WORDS.items()}
    words = {word: found[0] for word, found in meant.items() if found and word not in own}
    return words | WORDS_OF.get(function.__name__, {})


def spelled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which knows the other words for its arguments too.

    Raises, when it is called, an ArgumentError for an argument that is given under two names.
    """
    words: dict[str, str | None] = {**words_of(function)}
    if function.__name__ in INPLACE:
        words["inplace"] = None
    code = function.__code__
    places = {name: i for i, name in enumerate(code.co_varnames[: code.co_argcount])}

    def ours(count: int, options: dict[str, Any]) -> dict[str, Any]:
        """The options under the function's own names, after `count` arguments without a name."""
        made: dict[str, Any] = {}
        for word, value in options.items():
            name = words.get(word, word)
            if name is None:
                continue
            if name in made or (name is not word and places.get(name, count) < count):
                same = (w for w in options if w != word and words.get(w, w) == name)
                raise _twice(function.__name__, word, next(same, name))
            made[name] = value
        return made

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if not options:
            return function(*args)
        for word in options:
            if word in words:
                return function(*args, **ours(len(args), options))
        return function(*args, **options)

    return call


def _twice(op: str, word: str, name: str) -> ArgumentError:
    expected = f"this or {name}, which is the same"
    return ArgumentError(op, word, expected, "both", f"leave out {word}=")
