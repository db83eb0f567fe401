"""The options of each command, and errors of one line that propose the nearest word."""

from __future__ import annotations

import argparse
import platform
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import tinygraph
from tinygraph.cli.check_kernel import add_launch_options, check_kernel
from tinygraph.cli.commands import evaluate, list_recipes, show, train
from tinygraph.cli.experiment import add_arguments as add_experiment_arguments
from tinygraph.cli.experiment import run_experiment
from tinygraph.cli.gradcheck import gradcheck_file
from tinygraph.cli.kernels import list_kernels
from tinygraph.cli.machine import doctor
from tinygraph.cli.profile import profile
from tinygraph.cli.super_resolve import add_arguments as add_super_resolve_arguments
from tinygraph.cli.super_resolve import super_resolve_file
from tinygraph.cli.values import SETTINGS, assignment, option_of, whole_number
from tinygraph.cuda.nvrtc.compiling import ARCHITECTURES
from tinygraph.errors import nearest

WHICH = "which one, `tinygraph recipes` lists them; or a file of your own, my_recipe.py"


class UsageError(Exception):
    """Arguments that make no sense; the message says why."""


class Parser(argparse.ArgumentParser):
    """argparse with one-line errors that propose the nearest word."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")

    def options(self) -> list[str]:
        return list(self._option_string_actions)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            hint = nearest(value, action.choices)
            text = f"expected one of {', '.join(action.choices)}, got {value!r}"
            raise argparse.ArgumentError(action, f"{text}; {hint}" if hint else text)


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
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            epilog=f"example: tinygraph {name} {example}".rstrip(),
        )
        add_arguments(parsers[name])
        text = "print one JSON object, and only that"
        parsers[name].add_argument("--json", action="store_true", help=text)
        parsers[name].set_defaults(run_command=function, json=False)
    args, rest = parser.parse_known_args(argv)
    chosen = parsers[args.command] if args.command else parser
    if rest:
        word = rest[0].split("=")[0]
        what, hint = (
            "option" if word.startswith("-") else "argument",
            nearest(word, chosen.options()),
        )
        chosen.error(f"unknown {what} {word!r}" + (f"; {hint}" if hint else ""))
    if not args.command:
        parser.error(f"expected a command: {', '.join(PARSERS)}")
    if args.command == "train" and not args.recipe and not args.resume:
        chosen.error("the following arguments are required: RECIPE")
    return args


def _settings(parser: argparse.ArgumentParser, *names: str, **other_help: str) -> None:
    """Options for settings of a recipe, read by its types; data files; any setting with --set."""
    end: Any = parser.add_mutually_exclusive_group() if "duration" in names else parser
    for name in names:
        metavar, text = SETTINGS[name]
        of = end if name in ("epochs", "duration") else parser
        of.add_argument(option_of(name), metavar=metavar, help=other_help.get(name, text))
    text = "any setting of the recipe, such as --set lr=0.5; may be given again for another one"
    assigned: dict[str, Any] = {"type": assignment, "action": "append", "default": []}
    parser.add_argument("--set", **assigned, metavar="NAME=VALUE", help=text)
    _data_arguments(parser)


def _data_arguments(parser: argparse.ArgumentParser, download: bool = True) -> None:
    text = "the folder of the data files (default $TINYGRAPH_DATA)"
    parser.add_argument("--data-dir", metavar="DIR", help=text)
    if download:
        text = "fetch data files that are missing"
        parser.add_argument("--download", action="store_true", help=text)


def _train_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("recipe", nargs="?", metavar="RECIPE", help=WHICH)
    _settings(parser, *SETTINGS)
    add("--run", metavar="DIR", help="a new folder for the results (default runs/RECIPE-DATE-TIME)")
    add("--resume", metavar="RUN", help="go on with a run that was stopped, with the same bits")
    add("--dry-run", action="store_true", help="try one batch, measure it, and write nothing")


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="the folder that a training wrote")
    text = "the file of its recipe, where it was trained from one"
    parser.add_argument("--recipe", metavar="FILE.py", help=text)


def _evaluate_arguments(parser: argparse.ArgumentParser) -> None:
    _run_arguments(parser)
    text = "take the parameters of the epoch that was best on the validation data"
    parser.add_argument("--best", action="store_true", help=text)
    text = "cpu, emulator or cuda, wherever the run was trained; default cpu"
    parser.add_argument("--device", default="cpu", metavar="NAME", help=text)
    _data_arguments(parser, download=False)


def _profile_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("recipe", metavar="RECIPE", help=WHICH)
    text = (
        "cpu (what each op takes), emulator (what kernels move, registers, occupancy) or cuda "
        "(their times too); default emulator"
    )
    _settings(parser, "device", "data", "filters", "batch_size", device=text)
    text = "steps to look at; default 3, on the cpu 10"
    add("--steps", type=whole_number(1), metavar="N", help=text)
    text = "registers and occupancy for this one (default: the GPU's, on the emulator sm_90)"
    add("--arch", choices=ARCHITECTURES, metavar="ARCH", help=text)
    text = "where the bars are drawn (default profile-RECIPE-DEVICE.svg)"
    add("--picture", metavar="FILE", help=text)


def _kernels_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", help=".cu files (default: all that tinygraph has)")
    text = "one architecture, as in sm_90, or all with a line for each (default: the worst of all)"
    add("--arch", choices=(*ARCHITECTURES, "all"), metavar="ARCH", help=text)


def _check_kernel_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a .cu file")
    add_launch_options(parser)
    text = "count memory accesses for each line: coalescing, bank conflicts, bytes"
    parser.add_argument("--profile", action="store_true", help=text)


def _gradcheck_arguments(parser: argparse.ArgumentParser) -> None:
    text = "a Python file and the name of an op, or of a function of Tensors, in it"
    parser.add_argument("target", metavar="FILE.py:NAME", help=text)
    text = "of the random upstream gradients; default 0"
    parser.add_argument("--seed", type=whole_number(0, 2**63), default=0, metavar="N", help=text)


def _experiment_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiment_arguments(parser)
    _data_arguments(parser)


def _no_arguments(parser: argparse.ArgumentParser) -> None:
    """But --json, which every command has."""


Command = tuple[
    Callable[[Namespace], dict[str, Any]], str, str, Callable[[argparse.ArgumentParser], None]
]
PARSERS: dict[str, Command] = {  # name -> function, help, example, arguments
    "train": (train, "train a recipe", "numba_cnn --epochs 5 --run runs/first", _train_arguments),
    "evaluate": (
        evaluate,
        "measure a trained run on its test data",
        "runs/first",
        _evaluate_arguments,
    ),
    "recipes": (list_recipes, "list what can be trained", "", _no_arguments),
    "show": (show, "draw the pictures of a run again", "runs/first", _run_arguments),
    "super-resolve": (
        super_resolve_file,
        "enlarge a picture with a trained srcnn",
        "small.png large.png --parameters runs/first",
        add_super_resolve_arguments,
    ),
    "experiment": (
        run_experiment,
        "run the experiments of a recipe's source, and draw its figures",
        "numba_cnn --data-dir data",
        _experiment_arguments,
    ),
    "gradcheck": (
        gradcheck_file,
        "check the gradients of an op in a file, and say what is wrong",
        "my_op.py:MyOp",
        _gradcheck_arguments,
    ),
    "kernels": (
        list_kernels,
        "compile kernels, without a GPU, and show what they take",
        "--arch sm_90",
        _kernels_arguments,
    ),
    "check-kernel": (
        check_kernel,
        "run one launch of a kernel on the CPU and find its mistakes",
        'scale.cu --grid 4 --block 256 --arg "x=rng.random(1000)" --arg n=1000',
        _check_kernel_arguments,
    ),
    "profile": (
        profile,
        "say what the ops of a training step take, or what its kernels do",
        "numba_cnn --device cpu --set compile=true",
        _profile_arguments,
    ),
    "doctor": (doctor, "say what tinygraph finds on this machine", "--json", _no_arguments),
}
