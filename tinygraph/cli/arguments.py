"""The options of each command, and errors of one line that propose the nearest word."""

from __future__ import annotations

import argparse
import platform
import re
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
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
from tinygraph.cli.values import (
    SETTING_TYPES,
    architecture,
    assignment,
    dataset_name,
    device_name,
    one_architecture,
    whole_number,
)
from tinygraph.data import datasets
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
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            epilog=f"example: tinygraph {name} {example}".rstrip(),
        )
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
    if args.command == "train" and not args.recipe and not args.resume:
        chosen.error("the following arguments are required: RECIPE")
    return args


def _unknown(what: str, word: str, known: Iterable[str]) -> str:
    hint = nearest(word, known)
    return f"unknown {what} {word!r}" + (f"; {hint}" if hint else "")


def _train_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("recipe", nargs="?", metavar="RECIPE", help=WHICH)
    # Any word: the recipe knows which data it takes, and says so.
    add("--data", metavar="NAME", help=f"the dataset: {', '.join(datasets)}")
    _data_dir_argument(parser)
    add("--download", action="store_true", help="fetch data files that are missing")
    _setting(parser, "filters", "N", "filters of the convolution")
    _setting(parser, "batch_size", "N", "samples in a batch")
    end = parser.add_mutually_exclusive_group()
    _setting(end, "epochs", "N", "how often to go through the training data")
    _setting(end, "duration", "TIME", "how long to train instead, measured: 90s, 10m, 1.5h")
    _setting(parser, "seed", "N", "of all random numbers")
    _setting(parser, "lr", "X", "learning rate")
    text = "cpu (numpy), emulator (the CUDA kernels, run by the CPU) or cuda; default cpu"
    _setting(parser, "device", "NAME", text)
    _set_argument(parser)
    add("--run", metavar="DIR", help="a new folder for the results (default runs/RECIPE-DATE-TIME)")
    add("--resume", metavar="RUN", help="go on with a run that was stopped, with the same bits")
    _setting(parser, "backup_every", "TIME", "keep dated copies of the parameters")
    add("--dry-run", action="store_true", help="try one batch, measure it, and write nothing")
    _json_argument(parser)


def _set_argument(parser: argparse.ArgumentParser) -> None:
    text = "any setting of the recipe, such as --set lr=0.5; may be given again for another one"
    parser.add_argument(
        "--set", type=assignment, action="append", default=[], metavar="NAME=VALUE", help=text
    )


def _setting(parser: Any, name: str, metavar: str, text: str) -> None:
    """An option of its own for a setting that many recipes have."""
    option = "--" + name.replace("_", "-")
    parser.add_argument(option, type=SETTING_TYPES[name], metavar=metavar, help=text)


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="the folder that a training wrote")
    text = "the file of its recipe, where it was trained from one"
    parser.add_argument("--recipe", metavar="FILE.py", help=text)
    _json_argument(parser)


def _evaluate_arguments(parser: argparse.ArgumentParser) -> None:
    _run_arguments(parser)
    text = "take the parameters of the epoch that was best on the validation data"
    parser.add_argument("--best", action="store_true", help=text)
    text = "cpu, emulator or cuda, wherever the run was trained; default cpu"
    parser.add_argument("--device", type=device_name, default="cpu", metavar="NAME", help=text)
    _data_dir_argument(parser)


def _profile_arguments(parser: argparse.ArgumentParser) -> None:
    size = whole_number(1, 2**31 - 1)
    add = parser.add_argument
    add("recipe", metavar="RECIPE", help=WHICH)
    text = (
        "cpu (what each op takes), emulator (what kernels move, registers, occupancy) or cuda "
        "(their times too); default emulator"
    )
    add("--device", type=device_name, default="emulator", metavar="NAME", help=text)
    add("--data", type=dataset_name, metavar="NAME", help=f"the dataset: {', '.join(datasets)}")
    _data_dir_argument(parser)
    add("--download", action="store_true", help="fetch data files that are missing")
    add("--filters", type=size, metavar="N", help="filters of the convolution")
    add("--batch-size", type=size, metavar="N", help="samples in a batch")
    _set_argument(parser)
    text = "steps to look at; default 3, on the cpu 10"
    add("--steps", type=size, metavar="N", help=text)
    text = "registers and occupancy for this one (default: the GPU's, on the emulator sm_90)"
    add("--arch", type=one_architecture, metavar="ARCH", help=text)
    text = "where the bars are drawn (default profile-RECIPE-DEVICE.svg)"
    add("--picture", metavar="FILE", help=text)
    _json_argument(parser)


def _kernels_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", help=".cu files (default: all that tinygraph has)")
    text = "one architecture, as in sm_90, or all with a line for each (default: the worst of all)"
    add("--arch", type=architecture, metavar="ARCH", help=text)
    _json_argument(parser)


def _check_kernel_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a .cu file")
    add_launch_options(parser)
    text = "count memory accesses for each line: coalescing, bank conflicts, bytes"
    parser.add_argument("--profile", action="store_true", help=text)
    _json_argument(parser)


def _gradcheck_arguments(parser: argparse.ArgumentParser) -> None:
    text = "a Python file and the name of an op, or of a function of Tensors, in it"
    parser.add_argument("target", metavar="FILE.py:NAME", help=text)
    text = "of the random upstream gradients; default 0"
    parser.add_argument("--seed", type=whole_number(0, 2**63), default=0, metavar="N", help=text)
    _json_argument(parser)


def _super_resolve_arguments(parser: argparse.ArgumentParser) -> None:
    add_super_resolve_arguments(parser)
    _json_argument(parser)


def _experiment_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiment_arguments(parser)
    _data_dir_argument(parser)
    _json_argument(parser)


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
    "evaluate": (
        evaluate,
        "measure a trained run on its test data",
        "runs/first",
        _evaluate_arguments,
    ),
    "recipes": (list_recipes, "list what can be trained", "", _json_argument),
    "show": (show, "draw the pictures of a run again", "runs/first", _run_arguments),
    "super-resolve": (
        super_resolve_file,
        "enlarge a picture with a trained srcnn",
        "small.png large.png --parameters runs/first",
        _super_resolve_arguments,
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
    "doctor": (doctor, "say what tinygraph finds on this machine", "--json", _json_argument),
}
