"""The `tinygraph` command.

Each command is one function below, which returns what `--json` prints and shows the rest with
`print`; `PARSERS` lists them.  Exit codes: 0 ok, 1 failed while running, 2 bad usage or bad input,
130 interrupted.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import math
import os
import platform
import re
import shutil
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import asdict
from importlib.util import find_spec
from io import StringIO
from typing import Any, NoReturn

import tinygraph
from tinygraph import recipes
from tinygraph.data import datasets
from tinygraph.device import get_device
from tinygraph.errors import (
    ArgumentError,
    CheckpointError,
    DatasetError,
    DtypeError,
    ShapeError,
    TinygraphError,
    explain,
    nearest,
)
from tinygraph.training import Progress, RunFolder, environment

BAD_INPUT = (ArgumentError, DatasetError, DtypeError, ShapeError)
SETTINGS = ("data", "filters", "batch_size", "epochs", "seed", "lr")  # options for recipes
EXTRAS = {  # extra -> libraries as they are imported
    "data": ("sklearn", "pooch", "PIL"),
    "plot": ("matplotlib", "graphviz"),
    "fast": ("numba", "threadpoolctl"),
    "cuda12": ("cupy",),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        0, 1, 2 or 130.

    Examples
    --------
    >>> from tinygraph.cli import main
    >>> main(["recipes"])
    numba_cnn  conv 3x3, ReLU, max-pool 2x2, linear: handwritten digits (digits, mnist)
    0
    """
    command = ""
    try:
        args = parse(sys.argv[1:] if argv is None else argv)
        command = args.command
        if args.json:
            with redirect_stdout(StringIO()):
                answer = args.run_command(args)
            print(json.dumps(answer, indent=2, default=str))
        else:
            args.run_command(args)
        sys.stdout.flush()
        return 0
    except UsageError as error:
        return _fail(str(error), 2)
    except BAD_INPUT as error:
        return _fail(str(error), 2)
    except CheckpointError as error:  # while training it is the disk, otherwise what was named
        return _fail(str(error), 1 if command == "train" else 2)
    except TinygraphError as error:
        return _fail(str(error), 1)
    except MemoryError as error:
        way_out = "a smaller --batch-size or fewer --filters need less"
        return _fail(f"not enough memory. {error}. Way out: {way_out}", 1)
    except BrokenPipeError:  # the reader of stdout has gone, as in `tinygraph ... | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _fail(f"{error.filename or 'the system'}: {error.strerror or error}", 1)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _fail(message: str, code: int) -> int:
    print(f"error: {message}", file=sys.stderr)
    return code


# ---- commands ---------------------------------------------------------------------------------


def train(args: Namespace) -> dict[str, Any]:
    """Train a recipe, draw its pictures, and name all files."""
    recipe = recipes.get(args.recipe)
    given = {name: getattr(args, name) for name in SETTINGS if getattr(args, name) is not None}
    config = recipe.settings(given)
    settings = ", ".join(f"{name} {value}" for name, value in asdict(config).items())
    run = RunFolder(args.run) if args.run else RunFolder.new(recipe.name)
    print(f"{recipe.name}: {settings}", flush=True)
    try:
        result = recipe.train(
            config, run, args.data_dir, args.download, Progress(lines=not args.json)
        )
    except BaseException:
        with suppress(OSError):
            run.path.rmdir()  # goes only while it is empty: nothing was trained
        raise
    _, notes = _draw(recipe, run)
    files = sorted(str(path) for path in run.path.iterdir())
    for file in files:
        print(f"wrote {file}")
    print(f"test {recipe.metric} {result[recipe.metric]:.4f}")
    return {
        "recipe": recipe.name, "settings": asdict(config), "run": str(run.path), "files": files,
        "notes": notes, "epochs": run.rows(), "test": result,
    }  # fmt: skip


def evaluate(args: Namespace) -> dict[str, Any]:
    """Look at the test data with the parameters of a run."""
    run = RunFolder.open(args.run)
    recipe = _recipe_of(run)
    result = recipe.evaluate(run, args.data_dir)
    for name in sorted(result, key=lambda name: name == recipe.metric):
        print(f"test {name} {result[name]:.4f}")
    return {"recipe": recipe.name, "run": str(run.path), "test": result}


def list_recipes(args: Namespace) -> dict[str, Any]:
    """Name the recipes."""
    known = recipes.recipes.values()
    width = max(len(recipe.name) for recipe in known)
    for recipe in known:
        print(f"{recipe.name:{width}}  {recipe.summary}")
    rows = [
        {"name": r.name, "summary": r.summary, "settings": asdict(r.config())} for r in known
    ]
    return {"recipes": rows}


def show(args: Namespace) -> dict[str, Any]:
    """Draw the pictures of a run again."""
    run = RunFolder.open(args.run)
    files, notes = _draw(_recipe_of(run), run)
    for file in files:
        print(f"wrote {file}")
    return {"run": str(run.path), "files": files, "notes": notes}


def _recipe_of(run: RunFolder) -> recipes.Recipe:
    name = run.config.get("recipe")
    if not isinstance(name, str):
        raise CheckpointError(
            explain("run folder", str(run.path / "config.json"), "the name of a recipe", name)
        )
    return recipes.get(name)


def _draw(recipe: recipes.Recipe, run: RunFolder) -> tuple[list[str], list[str]]:
    """The pictures that could be drawn, and a note where a library is absent."""
    files: list[str] = []
    try:
        files.extend(str(path) for path in recipe.draw(run))
    except ImportError:
        note = "no further pictures without matplotlib: pip install 'tinygraph-nn[plot]'"
        print(note)
        return files, [note]
    return files, []


def doctor(args: Namespace) -> dict[str, Any]:
    """Say what tinygraph finds on this machine."""
    found = environment()
    blas = found["blas"]
    devices = {name: _device(name) for name in ("cpu", "emulator", "cuda")}
    libraries = {name: _version(name) for names in EXTRAS.values() for name in names}
    compiler = _compiler()
    warnings = []
    if "OPENBLAS_CORETYPE" in os.environ:
        core = os.environ["OPENBLAS_CORETYPE"]
        warnings.append(f"OPENBLAS_CORETYPE={core} forces BLAS kernels: this can halve the speed")
    print(f"python     {found['python']} ({sys.executable})")
    print(f"numpy      {found['numpy']}")
    print(f"tinygraph  {tinygraph.__version__}")
    print(f"system     {found['platform']}, {found['cpus']} CPUs")
    threads = blas["threads"] or "unknown (pip install 'tinygraph-nn[fast]' to know)"
    core = f", {blas['core']} kernels" if blas["core"] else ""
    print(f"blas       {blas['name']} {blas['version']}{core}, threads: {threads}")
    for name, state in devices.items():
        print(f"{name:9}  {state}")
    print(f"compiler   {compiler or 'no C++ compiler found'}")
    for extra, names in EXTRAS.items():
        print(f"[{extra}]".ljust(9), end="  ")
        print(", ".join(f"{name} {libraries[name] or 'absent'}" for name in names), end="")
        missing = not all(libraries[name] for name in names)
        print(f": pip install 'tinygraph-nn[{extra}]'" if missing else "")
    for warning in warnings:
        print(f"warning: {warning}")
    return {
        **found, "tinygraph": tinygraph.__version__, "devices": devices, "compiler": compiler,
        "libraries": libraries, "warnings": warnings,
    }  # fmt: skip


def _device(name: str) -> str:
    try:
        get_device(name)
    except TinygraphError as error:
        return f"not available: {error}"
    return "available"


def _version(module: str) -> str | None:
    """The version of a library, without importing it; None if it is absent."""
    if find_spec(module) is None:
        return None
    names = importlib.metadata.packages_distributions().get(module, [module])
    try:
        return importlib.metadata.version(names[0])
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


def _compiler() -> str | None:
    candidates = [os.environ.get("CXX", ""), "c++", "g++", "clang++", "cl"]
    return next((path for name in candidates if name and (path := shutil.which(name))), None)


# ---- arguments --------------------------------------------------------------------------------


class UsageError(Exception):
    """Arguments that make no sense; the message says why."""


class Parser(argparse.ArgumentParser):
    """argparse with one-line errors that propose the nearest word."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        match = re.search(r"invalid choice: '([^']*)'", message)
        if match:
            message = _unknown("command", match.group(1), PARSERS)
        raise UsageError(f"{message} (see {self.prog} --help)")


def parse(argv: Sequence[str]) -> Namespace:
    """The arguments as a Namespace, or UsageError."""
    parser = Parser(
        prog="tinygraph",
        description="Train and inspect neural networks as computational graphs.",
        epilog="example: tinygraph train numba_cnn --epochs 5",
    )
    version = f"tinygraph {tinygraph.__version__} (Python {platform.python_version()})"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    parsers = {}
    for name, (function, text, example, add_arguments) in PARSERS.items():
        parsers[name] = commands.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.",
            epilog=f"example: tinygraph {name} {example}".rstrip(),
        )  # fmt: skip
        add_arguments(parsers[name])
        parsers[name].set_defaults(run_command=function, json=False)
    args, rest = parser.parse_known_args(argv)
    chosen = parsers[args.command] if args.command else parser
    if rest:
        option = rest[0].split("=")[0]
        what = "option" if option.startswith("-") else "argument"
        chosen.error(_unknown(what, option, chosen._option_string_actions))
    if not args.command:
        parser.error(f"expected a command: {', '.join(PARSERS)}")
    return args


def _unknown(what: str, word: str, known: Iterable[str]) -> str:
    hint = nearest(word, known)
    return f"unknown {what} {word!r}" + (f"; {hint}" if hint else "")


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


def dataset_name(text: str) -> str:
    """An argument type: the name of a dataset."""
    if text not in datasets:
        hint = nearest(text, datasets) or f"known: {', '.join(datasets)}"
        raise argparse.ArgumentTypeError(f"no dataset {text!r}; {hint}")
    return text


def _train_arguments(parser: argparse.ArgumentParser) -> None:
    size = whole_number(1, 2**31 - 1)
    add = parser.add_argument
    add("recipe", metavar="RECIPE", help="which one; `tinygraph recipes` lists them")
    add("--data", type=dataset_name, metavar="NAME", help="the dataset: digits or mnist")
    _data_dir_argument(parser)
    add("--download", action="store_true", help="fetch data files that are missing")
    add("--filters", type=size, metavar="N", help="filters of the convolution")
    add("--batch-size", type=size, metavar="N", help="samples in a batch")
    add("--epochs", type=size, metavar="N", help="how often to go through the training data")
    add("--seed", type=whole_number(0, 2**64 - 1), metavar="N", help="of all random numbers")
    add("--lr", type=learning_rate, metavar="X", help="learning rate")
    add("--run", metavar="DIR", help="a new folder for the results (default runs/RECIPE-DATE-TIME)")
    _json_argument(parser)


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="the folder that a training wrote")
    _json_argument(parser)


def _evaluate_arguments(parser: argparse.ArgumentParser) -> None:
    _run_arguments(parser)
    _data_dir_argument(parser)


def _data_dir_argument(parser: argparse.ArgumentParser) -> None:
    text = "the folder of the data files (default $TINYGRAPH_DATA)"
    parser.add_argument("--data-dir", metavar="DIR", help=text)


def _json_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object, and only that")


Command = tuple[
    Callable[[Namespace], dict[str, Any]], str, str, Callable[[argparse.ArgumentParser], None]
]
PARSERS: dict[str, Command] = {  # name -> function, help, example, arguments
    "train": (train, "train a recipe", "numba_cnn --epochs 5 --run runs/first", _train_arguments),
    "evaluate": (evaluate, "measure a trained run on its test data", "runs/first",
                 _evaluate_arguments),
    "recipes": (list_recipes, "list what can be trained", "", _json_argument),
    "show": (show, "draw the pictures of a run again", "runs/first", _run_arguments),
    "doctor": (doctor, "say what tinygraph finds on this machine", "--json", _json_argument),
}  # fmt: skip
