"""From words of the command line to values, or to what is wrong."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from tinygraph.data import datasets
from tinygraph.errors import ArgumentError
from tinygraph.recipes import Recipe
from tinygraph.recipes.settings import read_setting, require_settings

SETTINGS = {  # with an option of their own: what stands for the value, and the help
    "data": ("NAME", f"the dataset: {', '.join(datasets)}"),
    "filters": ("N", "filters of the convolution"),
    "batch_size": ("N", "samples in a batch"),
    "epochs": ("N", "how often to go through the training data"),
    "duration": ("TIME", "how long to train instead, measured: 90s, 10m, 1.5h"),
    "seed": ("N", "of all random numbers"),
    "lr": ("X", "learning rate"),
    "device": (
        "NAME",
        "cpu (numpy), emulator (the CUDA kernels, run by the CPU) or cuda; default cpu",
    ),
    "backup_every": ("TIME", "keep dated copies of the parameters"),
}


def whole_number(low: int, high: int = 2**31 - 1) -> Callable[[str], int]:
    """An argument type: an int within limits."""

    def convert(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = low - 1
        if not low <= number <= high:
            expected = f"a whole number from {low} to {high}"
            raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}")
        return number

    return convert


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


def given_settings(args: argparse.Namespace, recipe: Recipe) -> dict[str, Any]:
    """The settings of a recipe that the command line names, as options or with --set.

    Raises
    ------
    ArgumentError
        A setting that the recipe lacks, a value that does not fit, or two values for one setting.
    """
    options = {name: getattr(args, name, None) for name in SETTINGS}
    texts = [(option_of(name), name, text) for name, text in options.items() if text is not None]
    given: dict[str, Any] = {}
    for option, name, text in [*texts, *((f"--set {n}", n, text) for n, text in args.set)]:
        require_settings(recipe.name, recipe.config, {name: text})
        if name in given:
            raise ArgumentError(f"{args.command}: {option}={text}: {name} was given twice")
        given[name] = read_setting(args.command, recipe.config, name, text, option)
    return given


def option_of(name: str) -> str:
    """The option of a setting.

    >>> option_of("batch_size")
    '--batch-size'
    """
    return "--" + name.replace("_", "-")
