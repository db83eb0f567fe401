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

from pathlib import Path
from typing import Annotated, Any, TypedDict

from tinygraph.base import AnyPath, ArgumentError, as_path, nearest
from tinygraph.base.json_files import parse, read_text
from tinygraph.recipes.settings import Limit, NotNegative, Positive, choices, fit, type_of

DISTRIBUTIONS = tuple(f"parameters_distribution_{layer}" for layer in (1, 2, 3))
SIZES = ("n1", "n2", "f1", "f2", "f3")
REQUIRED = (*SIZES, "momentum", "weight_decay_parameter", "learning_rates", *DISTRIBUTIONS)
_MAX_BYTES = 1 << 20

# More filters, or larger ones, are a slip of the pen.
Filters = Annotated[int, Limit("a whole number from 1 to 4096", lambda n: 1 <= n <= 4096)]
FilterSize = Annotated[
    int,
    Limit(
        "an odd number from 1 to 99, so that a filter has a middle", lambda n: n in range(1, 100, 2)
    ),
]


class Normal(TypedDict):
    """How a layer begins: filters that begin alike learn alike, so that theirs must differ."""

    mean_w: float
    mean_b: float
    std_deviation_w: Positive
    std_deviation_b: NotNegative


def read_config(path: AnyPath, config: type[Any]) -> dict[str, Any]:
    """The settings in a JSON config file, checked.

    A relative `parameters_file` in it is looked for beside it; None where the file has none.  The
    types of `config` say what a value may be.

    Raises
    ------
    ArgumentError
        The file is absent or no JSON object; a key is missing, unknown or given twice; a value
        cannot be.  The message names the file, the key, and why.
    """
    source = as_path("srcnn config", "path", path)
    content = read_object("srcnn config", source)
    known = (*REQUIRED, "parameters_file")
    for key in content:
        if key not in known:
            hint = nearest(key, REQUIRED)
            raise ArgumentError(str(source), key, "no such key", "it", hint)
    for key in REQUIRED:
        if key not in content:
            raise ArgumentError(str(source), key, "a value", "no such key", "add it")
    kinds = {key: choices(type_of(config, key))[0] for key in content}
    found = {key: fit(str(source), key, kinds[key], value) for key, value in content.items()}
    file = found.get("parameters_file")
    if file is not None:
        file = str(source.parent / as_path(str(source), "parameters_file", file))
    return {**found, "parameters_file": file}


def read_object(op: str, path: Path, most_bytes: int = _MAX_BYTES) -> dict[str, Any]:
    """The object in a JSON file, or ArgumentError."""
    try:
        content = parse(read_text(path, most_bytes))
    except OSError as error:
        raise ArgumentError(
            op, str(path), "a JSON file", error.strerror or error, "check the path"
        ) from None
    except ValueError as error:
        raise ArgumentError(op, str(path), "JSON", error) from None
    if not isinstance(content, dict):
        raise ArgumentError(op, str(path), "a JSON object", type(content).__name__)
    return content
