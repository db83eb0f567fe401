"""Argument types: functions from a word of the command line to a value, or to what is wrong.

SETTING_TYPES holds those of the settings that many recipes have.  Such a setting is read in the
same way whether it comes as an option (`--epochs 5`) or as an assignment (`--set epochs=5`).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

from tinygraph.cli.machine import DEVICES
from tinygraph.cuda.nvrtc.compiling import ARCHITECTURES
from tinygraph.data import datasets
from tinygraph.errors import ArgumentError, nearest
from tinygraph.recipes import Recipe
from tinygraph.recipes.settings import plain_type, read_setting, require_settings
from tinygraph.training import parse_duration


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """An argument type: an int within limits."""

    def convert(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = low - 1
        if not low <= number <= high:
            raise argparse.ArgumentTypeError(
                f"expected a whole number from {low} to {high}, got {text!r}"
            )
        return number

    return convert


def learning_rate(text: str) -> float:
    """An argument type: a finite number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not (number > 0 and math.isfinite(number)):
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return number


def duration(text: str) -> float:
    """An argument type: a duration in seconds."""
    try:
        return parse_duration(text)
    except ArgumentError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def dataset_name(text: str) -> str:
    """An argument type: the name of a dataset."""
    if text not in datasets:
        hint = nearest(text, datasets) or f"known: {', '.join(datasets)}"
        raise argparse.ArgumentTypeError(f"no dataset {text!r}; {hint}")
    return text


def device_name(text: str) -> str:
    """An argument type: the name of a device, whether it is there or not."""
    if text not in DEVICES:  # all names: the one nearest to "gpu" would be "cpu"
        raise argparse.ArgumentTypeError(f"no device {text!r}; known: {', '.join(DEVICES)}")
    return text


def one_architecture(text: str) -> str:
    """An argument type: an architecture that kernels are compiled for."""
    if text not in ARCHITECTURES:
        hint = nearest(text, ARCHITECTURES) or f"known: {', '.join(ARCHITECTURES)}"
        raise argparse.ArgumentTypeError(f"no architecture {text!r}; {hint}")
    return text


def architecture(text: str) -> str:
    """An argument type: an architecture that kernels are compiled for, or "all"."""
    known = (*ARCHITECTURES, "all")
    if text not in known:
        hint = nearest(text, known) or f"known: {', '.join(known)}"
        raise argparse.ArgumentTypeError(f"no architecture {text!r}; {hint}")
    return text


def assignment(text: str) -> tuple[str, str]:
    """An argument type: NAME=VALUE.  The name may be written as an option is: batch-size.

    >>> assignment("batch-size=16")
    ('batch_size', '16')
    """
    name, equals, value = text.partition("=")
    name = name.strip().removeprefix("--").replace("-", "_")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, such as lr=0.5, got {text!r}")
    return name, value.strip()


SETTING_TYPES: dict[str, Callable[[str], Any]] = {
    "data": dataset_name,
    "filters": whole_number(1, 2**31 - 1),
    "batch_size": whole_number(1, 2**31 - 1),
    "epochs": whole_number(1, 2**31 - 1),
    "seed": whole_number(0, 2**64 - 1),
    "lr": learning_rate,
    "duration": duration,
    "backup_every": duration,
    "device": device_name,
}


def given_settings(args: argparse.Namespace, recipe: Recipe) -> dict[str, Any]:
    """The settings of a recipe that the command line names, as options or with --set.

    Raises
    ------
    ArgumentError
        A setting that the recipe lacks, a value that does not fit, or two values for one setting.
    """
    options = {name: getattr(args, name, None) for name in SETTING_TYPES}
    given = {name: value for name, value in options.items() if value is not None}
    require_settings(recipe.name, recipe.config, given)
    for name, text in getattr(args, "set", []):
        if name in given:
            raise ArgumentError(f"{args.command}: --set {name}={text}: {name} was given twice")
        given[name] = _assigned(args.command, recipe, name, text)
    return given


def _assigned(command: str, recipe: Recipe, name: str, text: str) -> Any:
    """The value of one --set, held to the limits of the option of that name if there is one."""
    require_settings(recipe.name, recipe.config, {name: text})
    wanted, optional = plain_type(recipe.config, name)
    read = SETTING_TYPES.get(name) if wanted in (int, float, str) else None
    if read is None or (optional and text.lower() == "none"):
        return read_setting(recipe.name, recipe.config, name, text)
    try:
        return read(text)
    except argparse.ArgumentTypeError as error:
        raise ArgumentError(f"{command}: --set {name}: {error}") from None
