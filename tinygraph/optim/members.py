"""What an optimiser is given: groups of parameters, each with a name to save its state by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tinygraph.base import ArgumentError, nearest
from tinygraph.engine import Parameter, Tensor

Group = dict[str, Any]
Pairs = list[tuple["str | None", Parameter]]


def read_groups(
    op: str, params: Any, defaults: Mapping[str, Any], taken: Sequence[Pairs] = ()
) -> tuple[list[Group], list[str]]:
    """Groups with all hyper-parameters and a list of Parameters each, and the names of the latter.

    `params` is an iterable of Parameters, of pairs (name, Parameter), or of groups of these.
    `taken` are the groups that the optimiser has already.
    """
    members = _listed(op, params)
    as_groups = [isinstance(m, Mapping) for m in members]
    if any(as_groups) and not all(as_groups):
        raise ArgumentError(
            op,
            "params",
            "either groups or parameters",
            "both",
            "put the parameters into a group: {'params': [...]}",
        )
    known = ["params", *defaults, "initial_lr"]
    groups, pairs = [], []
    for given in members if any(as_groups) else [{"params": members}]:
        for key in given:
            if key not in known:
                expected = f"only {', '.join(known[:-1])}"
                raise ArgumentError(op, "group", expected, repr(key), nearest(str(key), known))
        if "params" not in given:
            raise ArgumentError(op, "group", "a key 'params'", list(given))
        alone = isinstance(given["params"], Parameter)
        pairs.append(_pairs(op, [given["params"]] if alone else given["params"]))
        settings = {key: plain(given.get(key, value)) for key, value in defaults.items()}
        if "initial_lr" in given:  # what a schedule begins with: books.py
            settings["initial_lr"] = plain(given["initial_lr"])
        groups.append({"params": [p for _, p in pairs[-1]], **settings})
    return groups, _unique_names(op, [*taken, *pairs])[sum(map(len, taken)) :]


def listed(op: str, argument: str, given: Any, expected: str = "Tensors") -> list[Any]:
    """What was given as a list, of one where it is a Tensor.

    An iterator that gives nothing has been used up: what shall be done to parameters would be done
    to none.  A list that is empty may be meant so.
    """
    if isinstance(given, Tensor):
        return [given]
    if not isinstance(given, Iterable):
        way_out = "pass model.parameters()"
        raise ArgumentError(op, argument, expected, f"a {type(given).__name__}", way_out)
    members = list(given)
    if isinstance(given, Iterator) and not members:
        way_out = "call model.parameters() anew each time, or pass a list: list(model.parameters())"
        raise ArgumentError(op, argument, expected, "an iterator that was used up", way_out)
    return members


def tensors(op: str, argument: str, given: Any) -> list[Tensor]:
    """The same, where nothing but Tensors will do."""
    members = listed(op, argument, given)
    for p in members:
        if not isinstance(p, Tensor):
            way_out = "pass model.parameters()"
            raise ArgumentError(op, argument, "Tensors", f"a {type(p).__name__}", way_out)
    return members


def plain(value: Any) -> Any:
    """numpy numbers, also in a tuple, as Python numbers: these do not promote float32."""
    if isinstance(value, (tuple, list)):
        return tuple(plain(v) for v in value)
    is_number = isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0
    return value.item() if is_number else value


def _listed(op: str, params: Any) -> list[Any]:
    """`params` as a list that is not empty."""
    way_out = ""
    if hasattr(params, "named_parameters"):
        way_out = "pass model.parameters()"
    elif isinstance(params, Tensor):
        way_out = "pass a list: [parameter]"
    elif isinstance(params, Mapping):
        way_out = "pass a list of groups: [group]"
    if way_out or not isinstance(params, Iterable):
        raise ArgumentError(
            op, "params", "an iterable of Parameters", type(params).__name__, way_out
        )
    members = list(params)
    if not members:
        raise ArgumentError(
            op,
            "params",
            "at least one Parameter",
            "none",
            "an iterator such as model.parameters() can be used only once",
        )
    return members


def _pairs(op: str, params: Any) -> Pairs:
    """The members of one group as pairs of a name that was given, if it was, and a Parameter."""
    pairs = []
    for member in _listed(op, params):
        is_pair = isinstance(member, (tuple, list)) and len(member) == 2
        name, p = member if is_pair else (None, member)
        if not isinstance(p, Parameter) or not (name is None or isinstance(name, str)):
            raise ArgumentError(
                op,
                "params",
                "Parameters, or pairs (name, Parameter)",
                f"a {type(p).__name__}",
                "make it with tg.Parameter(...)",
            )
        pairs.append((name, p))
    return pairs


def _unique_names(op: str, groups: Sequence[Pairs]) -> list[str]:
    """What each parameter's state goes by: the name given, its own if unique, or "group.index"."""
    everything = [pair for pairs in groups for pair in pairs]
    times = Counter(p for _, p in everything)
    if len(times) < len(everything):
        twice = [p.name or f"one of shape {p.shape}" for p, n in times.items() if n > 1]
        raise ArgumentError(
            op, "params", "each Parameter once", f"{', '.join(twice)} more than once"
        )
    found = Counter(name or p.name for name, p in everything)
    names = []
    for i, pairs in enumerate(groups):
        for j, (name, p) in enumerate(pairs):
            wanted = name or p.name
            names.append(wanted if wanted and found[wanted] == 1 else f"{i}.{j}")
    clashes = [name for name, n in Counter(names).items() if n > 1]
    if clashes:
        raise ArgumentError(op, "params", "names that differ", f"{clashes} more than once")
    return names
