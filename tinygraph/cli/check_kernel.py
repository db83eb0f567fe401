"""`tinygraph check-kernel`: one launch, told by options, under the checker.

    tinygraph check-kernel scale.cu --grid 4 --block 256 --arg "x=rng.random(1000)" \\
        --arg "y=empty(1000)" --arg alpha=2 --arg n=1000

The value of an argument is a Python expression with numpy's names, and these:

    rng              a numpy Generator of --seed; it draws in the order of the options
    empty(shape)     an output: uninitialised, and every element must be written
    out(array)       the same for an array of any kind
    inout(array)     it holds values, and may be written in part

A word behind the name says the same of any value, and `in` that the kernel only reads it:

    --arg x:in=ones(9)  --arg y:out=zeros(9)  --arg z:inout=zeros(9)

Without a word an array for a pointer to const is an input; any other one holds values and may be
written, and if the kernel writes it without reading it, it is an output.

Arrays are converted to the type of the parameter.  The expression is run as it stands, like
anything else that its author types on a command line; text of strangers has no business here.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import shlex
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph.base import ArgumentError, KernelCompileError, KernelLaunchError, as_path
from tinygraph.cli.options import Options, Parser, whole_number
from tinygraph.cuda import In, InOut, Kernel, Out, Report
from tinygraph.cuda.launch import MARKS
from tinygraph.cuda.nvrtc import ARCHITECTURES
from tinygraph.cuda.reading.signature import KernelParameter, Signature, kernels
from tinygraph.cuda.reading.source import Source

OP = "check-kernel"  # of launches that no command has read
EXAMPLE = 'n=1000, "x=rng.random(1000)", "y=empty((4, 8))", "t=zeros(3)" or "x=load(\'x.npy\')"'


def check_kernel(args: Namespace) -> dict[str, Any]:
    """Run one launch under the checker and print what it found."""
    try:
        with prints_on_stderr() if args.json else nullcontext():
            report = checked(args.file, args)
    except (KernelCompileError, KernelLaunchError) as error:
        raise ArgumentError(str(error)) from None  # the file or the launch: bad input
    print(report.text(colour=sys.stdout.isatty() and not os.environ.get("NO_COLOR")))
    return report.to_dict()


@contextmanager
def prints_on_stderr() -> Iterator[None]:
    """Send what kernels print with printf to stderr: stdout is for the JSON object alone."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)  # what C still holds belongs to the redirected stream
        os.dup2(kept, 1)
        os.close(kept)


# ---- the options of a launch ----------------------------------------------------------------


def extents(text: str) -> tuple[int, ...]:
    """An argument type: one to three extents, with x or commas between them.

    >>> extents("4x2"), extents("4,2"), extents("256")
    ((4, 2), (4, 2), (256,))
    """
    extents = re.split("[x,]", text)
    if len(extents) > 3 or not all(re.fullmatch(r"\s*\d+\s*", extent) for extent in extents):
        expected = "one to three whole numbers, as in 4, 4x2 or 4x2x1"
        raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}")
    return tuple(int(extent) for extent in extents)


_ROLES = {"in": "in_", "out": "out", "inout": "inout"}  # the functions: `in` is a word of Python


def _assignment(text: str) -> tuple[str, str]:
    """An argument type: a parameter's name and its value; a role behind the name goes round this.

    >>> _assignment("x=ones(4)"), _assignment("x:in=ones(4)"), _assignment("y:out=zeros(4)")
    (('x', 'ones(4)'), ('x', 'in_(ones(4))'), ('y', 'out(zeros(4))'))
    """
    name, equals, value = text.partition("=")
    name, colon, role = name.partition(":")
    value = value.strip()
    if not equals or not name.isidentifier() or (colon and role not in _ROLES):
        expected = "NAME=VALUE, or NAME:in=VALUE with in, out or inout"
        raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}: {EXAMPLE}")
    before, word, after = value.rpartition(":")
    if word and not colon and after.strip() in _ROLES:  # `x=ones(4):in` is understood as well
        value, role = before.strip(), after.strip()
    return name, f"{_ROLES[role]}({value})" if role else value


def macro(text: str) -> tuple[str, str]:
    """An argument type: a macro with its value, which is 1 if none is given."""
    name, equals, value = text.partition("=")
    if not name.isidentifier():
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}: TILE=16")
    return name, value if equals else "1"


def _seconds(text: str) -> float:
    """An argument type: a time.

    >>> _seconds("2.5")
    2.5
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"expected seconds, more than 0, got {text!r}")
    return seconds


LAUNCH_OPTIONS: Options = {
    "--kernel NAME": ('the function, as in "scale<float>"', {"default": ""}),
    "--grid N[xN[xN]]": ("blocks: 4, 4x2 or 4x2x1", {"required": True, "type": extents}),
    "--block N[xN[xN]]": ("threads of a block: 256 or 16x16", {"required": True, "type": extents}),
    "--arg NAME=VALUE": (
        "a parameter's value, with numpy's names and rng; NAME:in, :out, :inout say how it is "
        "used: " + EXAMPLE,
        {"action": "append", "default": [], "type": _assignment},
    ),
    "--shared BYTES": ("dynamic shared memory", {"default": 0, "type": whole_number(0)}),
    "--arch ARCH": (
        "hold the launch to this architecture too: shared memory, registers of a block",
        {"choices": ARCHITECTURES},
    ),
    "--define NAME=VALUE": ("a macro: TILE=16", {"action": "append", "default": [], "type": macro}),
    "--timeout SECONDS": (
        "of computing, after which a block counts as endless (default 10)",
        {"type": _seconds},
    ),
    "--seed N": ("of rng (default 0)", {"default": 0, "type": whole_number(0, 2**63)}),
}


def parse_launch(text: str) -> Namespace:
    """The options of a launch from one line of text, quoted as for a shell.

    Raises
    ------
    ArgumentError
        Naming the option and what it takes.

    >>> launch = parse_launch("--kernel scale --grid 4 --block 16x16 --arg n=1000")
    >>> launch.kernel, launch.grid, launch.block, launch.arg
    ('scale', (4,), (16, 16), [('n', '1000')])
    """
    parser = Parser(prog=f"tinygraph {OP}", add_help=False)
    parser.add_options(LAUNCH_OPTIONS)
    return parser.parse_args(shlex.split(text))


# ---- the launch -----------------------------------------------------------------------------


def checked(path: Path | str, launch: Namespace) -> Report:
    """The checker's report on a launch of a file.

    Raises
    ------
    KernelCompileError, KernelLaunchError, ArgumentError
        The kernel does not compile, or the arguments do not fit it.
    """
    kernel = kernel_of(path, launch)

    def report(profile: bool) -> Report:
        return kernel.check(
            launch.grid,
            launch.block,
            *arguments_of(kernel.signature, launch),
            shared=launch.shared,
            profile=profile,
            arch=launch.arch,
            timeout=launch.timeout,
        )

    found = report(False)  # one that counts does not look at the arithmetic of integers
    if not getattr(launch, "profile", False):
        return found
    return replace(report(True), findings=found.findings)


def kernel_of(path: Path | str, launch: Namespace) -> Kernel:
    """The kernel of the file that a launch is for: the named one, or the only one."""
    path, defines = as_path("check-kernel", "FILE", path), dict(launch.define)
    if launch.kernel:
        return Kernel(path, launch.kernel, defines)
    source = Source.read(path, defines)
    found = kernels(source)
    if len(found) == 1 and not found[0].template:
        return Kernel(path, found[0].name, defines)
    names = ", ".join(k.name + ("<...>" if k.template else "") for k in found) or "no kernel"
    expected = "a name, unless the file has one kernel alone that is no template"
    way_out = f"name one: {source.name} has {names}"
    raise ArgumentError(_command(launch), "--kernel", expected, "none", way_out)


def arguments_of(signature: Signature, launch: Namespace) -> list[Any]:
    """The arguments in the kernel's order, as `Kernel.check` takes them.

    Raises
    ------
    ArgumentError
        Names are missing, unknown or given twice, or an expression gives no fitting value.
    """
    given = [name for name, _ in launch.arg]
    known = {parameter.name: parameter for parameter in signature.parameters}
    missing = [name for name in known if name not in given]
    problems = {
        "missing": missing,
        "unknown": [name for name in given if name not in known],
        "twice": [name for name in known if given.count(name) > 1],
    }
    if any(problems.values()):
        got = "; ".join(f"{what} {', '.join(names)}" for what, names in problems.items() if names)
        way_out = " ".join(f'--arg "{name}={_guess(known[name])}"' for name in missing)
        expected = f"one for each parameter of {signature}"
        way_out = way_out or "leave out what is too much"
        raise ArgumentError(_command(launch), "--arg", expected, got, way_out)
    rng = np.random.default_rng(launch.seed)
    names = vars(np) | {"rng": rng, "in_": _in, "out": _out, "inout": _inout, "empty": _empty}
    op = _command(launch)
    made = {name: _value(op, known[name], text, names) for name, text in launch.arg}
    return [made[name] for name in known]


def _command(launch: Namespace) -> str:
    """The command that errors name."""
    return getattr(launch, "command", OP)


def _guess(parameter: KernelParameter) -> str:
    """A value for a parameter, to start from."""
    if not parameter.pointer:
        return "1000"
    if not parameter.const:
        return "empty(1000)"
    return "rng.random(1000)" if parameter.dtype.kind == "f" else "zeros(1000)"


def _value(op: str, parameter: KernelParameter, text: str, names: dict[str, Any]) -> Any:
    """What an expression gives: a number, an array of the parameter's type, or a marked one."""
    option = f"--arg {parameter.name}={text}"
    try:
        value = eval(text, dict(names))
    except Exception as error:  # whatever may go wrong in Python
        got = f"{type(error).__name__}: {error}"
        raise ArgumentError(op, option, "a value in numpy's words", got, EXAMPLE) from None
    if type(value) in MARKS:
        return type(value)(_converted(op, parameter, option, value.array))
    if not isinstance(value, np.ndarray):
        return value
    return _converted(op, parameter, option, value)


def _converted(op: str, parameter: KernelParameter, option: str, array: np.ndarray) -> np.ndarray:
    """The array in the type of the parameter; whole numbers stay what they are."""
    dtype = parameter.dtype
    with np.errstate(all="ignore"):
        made = np.array(array, dtype, order="C") if array.dtype.kind in "biuf" else None
    if made is None or (dtype.kind != "f" and not np.array_equal(made, array)):
        expected = f"numbers that {dtype} holds ({parameter})"
        way_out = f"whole numbers, as in arange, or astype({dtype})"
        raise ArgumentError(op, option, expected, f"an array of {array.dtype}", way_out)
    return made


def _in(array: Any) -> In:
    if isinstance(array, Out):
        raise ValueError("in says that the array holds values, empty that it holds none")
    return In(np.asarray(array))


def _out(array: Any) -> Out:
    return Out(array.array if isinstance(array, Out) else np.asarray(array))


def _inout(array: Any) -> InOut:
    if isinstance(array, Out):
        raise ValueError("inout says that the array holds values, empty that it holds none")
    return InOut(np.asarray(array))


def _empty(*args: Any, **options: Any) -> Out:
    return Out(np.zeros(*args, **options))
