"""The JSON config of an SRCNN: sizes, rates and initialisation, apart from the parameters.

    {
      "n1": 64, "n2": 32, "f1": 9, "f2": 1, "f3": 5,
      "momentum": 0.9,
      "weight_decay_parameter": 0.0,
      "learning_rates": [0.0001, 0.0001, 0.00001],
      "parameters_file": "parameters.json",
      "parameters_distribution_1":
          {"mean_w": 0.0, "mean_b": 0.0, "std_deviation_w": 0.001, "std_deviation_b": 0.0},
      "parameters_distribution_2": ...,  "parameters_distribution_3": ...
    }

All but parameters_file must be there, and nothing else may.

Source: the program described in "Neural networks: implementation tips", 2015
(github.com/Scthe/cnn-Super-Resolution), whose files are read as they are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tinygraph.errors import ArgumentError, nearest

DISTRIBUTIONS = tuple(f"parameters_distribution_{layer}" for layer in (1, 2, 3))
DISTRIBUTION_KEYS = ("mean_w", "mean_b", "std_deviation_w", "std_deviation_b")
SIZES = ("n1", "n2", "f1", "f2", "f3")
REQUIRED = (*SIZES, "momentum", "weight_decay_parameter", "learning_rates", *DISTRIBUTIONS)
MOST_FILTERS, LARGEST_FILTER = 4096, 99  # what is more is a slip of the pen
_MAX_BYTES = 1 << 20


def read_config(path: str | Path) -> dict[str, Any]:
    """The settings in a JSON config file, checked.

    Parameters
    ----------
    path : str or Path
        A relative `parameters_file` in it is looked for beside it.

    Returns
    -------
    dict
        The keys above; `parameters_file` is None where the file has none.

    Raises
    ------
    ArgumentError
        The file is absent or no JSON object; a key is missing, unknown or given twice; a value
        cannot be.  The message names the file, the key, and why.

    Examples
    --------
    >>> import json, tempfile
    >>> normal = {"mean_w": 0, "mean_b": 0, "std_deviation_w": 0.001, "std_deviation_b": 0}
    >>> content = {"n1": 32, "n2": 16, "f1": 9, "f2": 1, "f3": 5, "momentum": 0.9,
    ...            "weight_decay_parameter": 0.001, "learning_rates": [1e-4, 1e-4, 1e-5],
    ...            **{name: normal for name in DISTRIBUTIONS}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(f"{folder}/config.json", "w") as file:
    ...         json.dump(content, file)
    ...     read_config(f"{folder}/config.json")["n1"]
    32
    """
    source = Path(path).expanduser()
    content = read_object("srcnn config", source)
    unknown = [key for key in content if key not in (*REQUIRED, "parameters_file")]
    if unknown:
        raise _fault(source, unknown[0], "no such key", "it", nearest(unknown[0], REQUIRED))
    missing = [key for key in REQUIRED if key not in content]
    if missing:
        raise _fault(source, missing[0], "a value", "no such key", "add it")
    check_settings(content, str(source))
    file = content.get("parameters_file")
    return {**content, "parameters_file": None if file is None else str(source.parent / file)}


def read_object(op: str, path: Path, most_bytes: int = _MAX_BYTES) -> dict[str, Any]:
    """The object in a JSON file, or ArgumentError."""
    try:
        with path.open("rb") as file:
            data = file.read(most_bytes + 1)
        if len(data) > most_bytes:
            raise ValueError(f"more than {most_bytes} bytes")
        content = json.loads(data, object_pairs_hook=_no_repeats)
    except OSError as error:
        raise ArgumentError(
            op, str(path), "a JSON file", error.strerror or error, "check the path"
        ) from None
    except (ValueError, RecursionError) as error:
        raise ArgumentError(op, str(path), "JSON", error) from None
    if not isinstance(content, dict):
        raise ArgumentError(op, str(path), "a JSON object", type(content).__name__)
    return content


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """JSON lets a later key win silently."""
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(n for n in names if names.count(n) > 1)!r} twice")
    return content


def check_settings(settings: Mapping[str, Any], where: str = "srcnn") -> None:
    """ArgumentError for the first of the settings above that cannot be."""
    for name in SIZES:
        value, limit = settings[name], MOST_FILTERS if name[0] == "n" else LARGEST_FILTER
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= limit:
            raise _fault(where, name, f"a whole number from 1 to {limit}", repr(value))
        if name[0] == "f" and value % 2 == 0:
            raise _fault(
                where,
                name,
                "an odd number, so that a filter has a middle",
                value,
                f"{value - 1} or {value + 1}",
            )
    momentum, decay = settings["momentum"], settings["weight_decay_parameter"]
    if not (_is_number(momentum) and 0 <= momentum < 1):
        raise _fault(where, "momentum", "a number from 0 to below 1", repr(momentum))
    if not (_is_number(decay) and decay >= 0):
        raise _fault(where, "weight_decay_parameter", "a number of at least 0", repr(decay))
    rates = settings["learning_rates"]
    if not (
        isinstance(rates, (list, tuple))
        and len(rates) == 3
        and all(_is_number(rate) and rate > 0 for rate in rates)
    ):
        raise _fault(
            where, "learning_rates", "three numbers above 0, one for each layer", repr(rates)
        )
    for name in DISTRIBUTIONS:
        _check_distribution(where, name, settings[name])
    file = settings.get("parameters_file")
    if file is not None and not (isinstance(file, str) and file):
        raise _fault(where, "parameters_file", "the name of a file", repr(file))


def _check_distribution(where: str, name: str, value: Any) -> None:
    keys = ", ".join(DISTRIBUTION_KEYS)
    if not isinstance(value, Mapping) or set(value) != set(DISTRIBUTION_KEYS):
        got = f"keys {', '.join(map(str, value))}" if isinstance(value, Mapping) else repr(value)
        raise _fault(where, name, f"an object of {keys}", got)
    for key in DISTRIBUTION_KEYS:
        number = value[key]
        if not _is_number(number):
            raise _fault(where, f"{name}: {key}", "a finite number", repr(number))
        if key == "std_deviation_w" and number <= 0:
            raise _fault(
                where,
                f"{name}: {key}",
                "a number above 0",
                number,
                "filters that begin alike learn alike",
            )
        if key == "std_deviation_b" and number < 0:
            raise _fault(where, f"{name}: {key}", "a number of at least 0", number)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _fault(
    where: str | Path, name: str, expected: str, got: object, way_out: str = ""
) -> ArgumentError:
    return ArgumentError(str(where), name, expected, got, way_out)
