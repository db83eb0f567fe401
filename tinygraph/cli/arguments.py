"""The commands: the function of each, what is said about it, and its options."""

from __future__ import annotations

import platform
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, NamedTuple

import tinygraph
from tinygraph.base import ArgumentError
from tinygraph.cli.check_kernel import LAUNCH_OPTIONS, check_kernel
from tinygraph.cli.commands import evaluate, list_recipes, show, train
from tinygraph.cli.experiment import EXPERIMENT_OPTIONS, run_experiment
from tinygraph.cli.export import EXPORT, export
from tinygraph.cli.gradcheck import gradcheck_file
from tinygraph.cli.kernels import list_kernels
from tinygraph.cli.machine import doctor
from tinygraph.cli.options import SETTINGS, Options, Parser, assignment, whole_number
from tinygraph.cli.profile import profile
from tinygraph.cli.run_cuda import RUN_CUDA, own_options_first, run_cuda
from tinygraph.cli.sample import SAMPLE_OPTIONS, sample
from tinygraph.cli.step_kernel import STEP_KERNEL, step_kernel
from tinygraph.cli.super_resolve import SUPER_RESOLVE_OPTIONS, super_resolve_file
from tinygraph.cuda.data_sheets import GPUS
from tinygraph.cuda.nvrtc.compiling import ARCHITECTURES

WHICH = "which one, `tinygraph recipes` lists them; or a file of your own, my_recipe.py"
FILES: Options = {"--data-dir DIR": "the folder of the data files (default $TINYGRAPH_DATA)"}
DATA: Options = {**FILES, "--download": "fetch data files that are missing"}
SET: Options = {
    "--set NAME=VALUE": (
        "any setting of the recipe, such as --set lr=0.5; may be given again for another one",
        {"type": assignment, "action": "append", "default": []},
    )
}
RUN: Options = {
    "RUN": "the folder that a training wrote",
    "--recipe FILE.py": "the file of its recipe, where it was trained from one",
}
TRAIN: Options = {
    "RECIPE": (WHICH, {"nargs": "?"}),
    **SETTINGS,
    **SET,
    **DATA,
    "--run DIR": "a new folder for the results (default runs/RECIPE-DATE-TIME)",
    "--resume RUN": "go on with a run that was stopped, with the same bits",
    "--dry-run": "try one batch, measure it, and write nothing",
    "--tensorboard": "write RUN/tensorboard too: `tensorboard --logdir RUN` shows it",
}
BEST: Options = {"--best": "take the parameters of the epoch that was best on the validation data"}
EVALUATE: Options = {
    **RUN,
    **BEST,
    "--device NAME": (
        "cpu, emulator or cuda, wherever the run was trained; default cpu",
        {"default": "cpu"},
    ),
    **FILES,
}
PROFILE: Options = {
    "RECIPE": WHICH,
    "--device NAME": "cpu (what each op takes), emulator (what kernels move, registers, "
    "occupancy) or cuda (their times too); default emulator",
    **{name: SETTINGS[name] for name in ("--data NAME", "--filters N", "--batch-size N")},
    **SET,
    **DATA,
    "--steps N": ("steps to look at; default 3, on the cpu 10", {"type": whole_number(1)}),
    "--arch ARCH": (
        "registers and occupancy for this one (default: the GPU's, on the emulator sm_90)",
        {"choices": ARCHITECTURES},
    ),
    "--gpu NAME": (
        "predict the times of kernels on this GPU, which need not be there; nothing is run",
        {"choices": tuple(GPUS)},
    ),
    "--picture FILE": "where the bars are drawn (default profile-RECIPE-DEVICE.svg)",
}
KERNELS: Options = {
    "FILE": (".cu files (default: all that tinygraph has)", {"dest": "files", "nargs": "*"}),
    "--arch ARCH": (
        "an architecture, as in sm_90; may be given several times; or all, with a line for each "
        "(default: the worst of all)",
        {"choices": (*ARCHITECTURES, "all"), "action": "append", "default": []},
    ),
    "--build DIR": "put the machine code there: TINYGRAPH_CUBINS=DIR then needs no compiler",
}
CHECK_KERNEL: Options = {
    "FILE": "a .cu file",
    **LAUNCH_OPTIONS,
    "--profile": "count memory accesses for each line: coalescing, bank conflicts, bytes",
}
GRADCHECK: Options = {
    "FILE.py:NAME": (
        "a Python file and the name of an op, or of a function of Tensors, in it",
        {"dest": "target"},
    ),
    "--seed N": (
        "of the random upstream gradients; default 0",
        {"type": whole_number(0, 2**63), "default": 0},
    ),
}
EVERY: Options = {"--json": "print one JSON object, and only that"}


class Command(NamedTuple):
    """What a command does, and how it is called; `commands` are those below it."""

    run: Callable[[Namespace], dict[str, Any]]
    text: str
    example: str
    options: Options
    commands: Mapping[str, Command] = {}


PARSERS: dict[str, Command] = {
    "train": Command(train, "train a recipe", "numba_cnn --epochs 5 --run runs/first", TRAIN),
    "evaluate": Command(evaluate, "measure a trained run on its test data", "runs/first", EVALUATE),
    "recipes": Command(
        list_recipes,
        "list what can be trained, or the settings of one recipe",
        "numba_cnn",
        {"RECIPE": (WHICH, {"nargs": "?"})},
    ),
    "export": Command(
        export,
        "write the network of a run as an ONNX file",
        "runs/first model.onnx",
        {"RUN": RUN["RUN"], **EXPORT, **RUN, **BEST},
    ),
    "sample": Command(
        sample,
        "let a trained language model write a text",
        'runs/first --prompt "ROMEO:" --temperature 0.8',
        {**RUN, **BEST, **SAMPLE_OPTIONS},
    ),
    "show": Command(
        show,
        "draw the pictures of a run again",
        "runs/first --steps",
        {**RUN, "--steps": "only steps.html: the first step, to go through with every number"},
    ),
    "super-resolve": Command(
        super_resolve_file,
        "enlarge a picture with a trained srcnn",
        "small.png large.png --parameters runs/first",
        SUPER_RESOLVE_OPTIONS,
    ),
    "experiment": Command(
        run_experiment,
        "run the experiments of a recipe's source, and draw its figures",
        "numba_cnn --data-dir data",
        {**EXPERIMENT_OPTIONS, **DATA},
    ),
    "gradcheck": Command(
        gradcheck_file,
        "check the gradients of an op in a file, and say what is wrong",
        "my_op.py:MyOp",
        GRADCHECK,
    ),
    "kernels": Command(
        list_kernels,
        "compile kernels, without a GPU, and show what they take",
        "--arch sm_90",
        KERNELS,
    ),
    "check-kernel": Command(
        check_kernel,
        "run one launch of a kernel on the CPU and find its mistakes",
        'scale.cu --grid 4 --block 256 --arg "x=rng.random(1000)" --arg n=1000',
        CHECK_KERNEL,
    ),
    "step-kernel": Command(
        step_kernel,
        "write a page on which a launch of a kernel is gone through, warp by warp",
        'scale.cu --grid 4 --block 256 --arg "x=rng.random(1000)" --arg n=1000',
        STEP_KERNEL,
    ),
    "run-cuda": Command(
        run_cuda,
        "run a CUDA program, main and all, on the CPU, and find its mistakes",
        "vector_add.cu",
        RUN_CUDA,
    ),
    "profile": Command(
        profile,
        "say what the ops of a training step take, or what its kernels do",
        "numba_cnn --device cpu --set compile=true",
        PROFILE,
    ),
    "doctor": Command(
        doctor,
        "say what tinygraph finds on this machine",
        "--warm",
        {"--warm": "compile the emulator now, so that the first kernel need not wait for it"},
    ),
}


def commands() -> Mapping[str, Command]:
    """All commands: ours, and those that other packages have as entry points `tinygraph.commands`.

    An entry point names a Command.  One whose package is gone is none.

    Raises
    ------
    ArgumentError
        One cannot be loaded.
    """
    for point in entry_points(group="tinygraph.commands"):
        if point.name in PARSERS:
            continue
        try:
            PARSERS[point.name] = point.load()
        except Exception as error:
            package = point.module.partition(".")[0]
            if isinstance(error, ModuleNotFoundError) and error.name == package:
                continue
            got, way_out = f"{type(error).__name__}: {error}", f"install {package} again"
            raise ArgumentError("tinygraph", point.name, "a command", got, way_out) from error
    return PARSERS


def parse(argv: Sequence[str]) -> Namespace:
    """The arguments as a Namespace, or ArgumentError."""
    parser = Parser(
        prog="tinygraph",
        description="Train and inspect neural networks as computational graphs.",
        epilog="example: tinygraph train numba_cnn --epochs 5",
    )
    version = f"tinygraph {tinygraph.__version__} (Python {platform.python_version()})"
    parser.add_argument("--version", action="version", version=version)
    parsers: dict[str, Parser] = {}
    _add(parser, commands(), "command", parsers)
    if argv[:1] == ["run-cuda"]:
        argv = ["run-cuda", *own_options_first(argv[1:])]
    args, rest = parser.parse_known_args(argv)
    words = [getattr(args, word, None) for word in ("command", "action")]
    chosen = parsers.get(" ".join(filter(None, words)), parser)
    if rest:
        chosen.refuse(rest[0].split("=")[0])
    if not args.command:
        parser.error(f"expected a command: {', '.join(PARSERS)}")
    if args.command == "train":
        if not args.recipe and not args.resume:
            chosen.error("the following arguments are required: RECIPE")
        if args.epochs and args.duration:
            chosen.error("argument --duration: not allowed with argument --epochs")
    return args


def _add(parser: Parser, table: Mapping[str, Command], word: str, found: dict[str, Parser]) -> None:
    """Add the commands of a table below a parser, and their parsers to `found` by their words."""
    below = parser.add_subparsers(dest=word, metavar=word.upper())
    for name, command in table.items():
        text = f"{command.text[0].upper()}{command.text[1:]}."
        own = below.add_parser(name, help=command.text, description=text)
        own.epilog = f"example: {own.prog} {command.example}".rstrip()
        own.add_options({**command.options, **EVERY})
        own.set_defaults(run_command=command.run, json=False)
        found[own.prog.partition(" ")[2]] = own
        if command.commands:
            _add(own, command.commands, "action", found)
