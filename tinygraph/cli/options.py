"""Options as tables of what they are and what is said about them, and the values of their words."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from tinygraph.base import ArgumentError, as_path, nearest
from tinygraph.data import datasets
from tinygraph.recipes import Recipe
from tinygraph.recipes.settings import read_setting, require_settings

# "RUN", "--run DIR" or "--best" -> the help, or the help and more arguments of argparse
Options = Mapping[str, str | tuple[str, dict[str, Any]]]
DEVICE = "cpu (numpy), emulator (the CUDA kernels, run by the CPU) or cuda; default cpu"
SETTINGS: Options = {  # those that have an option of their own
    "--data NAME": f"the dataset: {', '.join(datasets)}; of texts shakespeare, or a file of yours",
    "--filters N": "filters of the convolution",
    "--batch-size N": "samples in a batch",
    "--epochs N": "how often to go through the training data",
    "--duration TIME": "how long to train instead, measured: 90s, 10m, 1.5h",
    "--seed N": "of all random numbers",
    "--lr X": "learning rate",
    "--device NAME": DEVICE,
    "--backup-every TIME": "keep dated copies of the parameters",
    "--shards N": "parts of each batch, which the ranks of mpiexec share; they fix the bits",
}


# What an option is called whose value is the path of a file or folder.
PATHS = ("DIR", "FILE", "FILE.py", "FOLDER", "IN", "OUT", "OUT.zip", "PACK", "PATH", "RUN")


class Parser(argparse.ArgumentParser):
    """argparse with errors of one line that propose the nearest word."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **options)

    def add_options(self, options: Options) -> None:
        for name, about in options.items():
            text, more = about if isinstance(about, tuple) else (about, {})
            option, _, metavar = name.partition(" ")
            if (metavar or option) in PATHS:
                more = {"type": at_home, **more}
            if not option.startswith("-"):
                rest = {key: value for key, value in more.items() if key != "dest"}
                word = more.get("dest", option.lower())
                self.add_argument(word, metavar=option, help=text, **rest)
            elif metavar:
                self.add_argument(option, metavar=metavar, help=text, **more)
            else:
                self.add_argument(option, action="store_true", help=text)

    def error(self, message: str) -> NoReturn:
        raise ArgumentError(f"{message} (see {self.prog} --help)")

    def refuse(self, word: str) -> NoReturn:
        """Say that there is no such option or argument."""
        what, hint = "argument", ""
        if word.startswith("-"):
            what, hint = "option", nearest(word, self._option_string_actions)
        self.error(f"unknown {what} {word!r}" + (f"; {hint}" if hint else ""))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            hint = nearest(value, action.choices)
            text = f"expected one of {', '.join(action.choices)}, got {value!r}"
            raise argparse.ArgumentError(action, f"{text}; {hint}" if hint else text)


def at_home(text: str) -> str:
    """An argument type: a path, with homes in the place of `~`."""
    try:
        return str(as_path("", "", text))
    except ArgumentError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix(": : ")) from None


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


def real_number(low: float) -> Callable[[str], float]:
    """An argument type: a finite float of at least `low`."""

    def convert(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not low <= number < math.inf:
            expected = f"a finite number of at least {low:g}"
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
    texts = []
    for option in (key.partition(" ")[0] for key in SETTINGS):
        name = option.removeprefix("--").replace("-", "_")
        text = getattr(args, name, None)
        texts += [] if text is None else [(option, name, text)]
    given: dict[str, Any] = {}
    for option, name, text in [*texts, *((f"--set {n}", n, text) for n, text in args.set)]:
        require_settings(recipe.name, recipe.config, {name: text})
        if name in given:
            raise ArgumentError(f"{args.command}: {option}={text}: {name} was given twice")
        given[name] = read_setting(args.command, recipe.config, name, text, option)
    return given
