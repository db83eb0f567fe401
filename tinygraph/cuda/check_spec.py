"""The text form of a launch: what `tinygraph check-kernel` takes, and files that list launches.

    --kernel scale --grid 4 --block 256 --arg x=float32[1000]:rand --arg y=float32[1000]:empty
    --arg alpha=0.5 --arg n=1000

The form of one argument is in argument_spec.py.  Random fills come from one numpy Generator, in the
order of the text, so that a seed repeats them.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from tinygraph.cuda.argument_spec import OP, ArgumentSpec, parse_argument
from tinygraph.cuda.emulator.report import Report
from tinygraph.cuda.kernel import Kernel
from tinygraph.cuda.reading.signature import Signature, kernels
from tinygraph.cuda.reading.source import Source
from tinygraph.errors import ArgumentError

__all__ = [
    "ArgumentSpec",
    "Launch",
    "add_launch_options",
    "launch_of",
    "parse_argument",
    "parse_grid",
    "parse_launch",
]


@dataclass(frozen=True)
class Launch:
    """A whole launch in text form, read but not yet filled.

    Attributes
    ----------
    kernel : str
        The function with its template arguments; "" if the file has only one.
    grid, block : tuple of int
        One to three extents each.
    arguments : tuple of ArgumentSpec
    shared : int
        Bytes of dynamic shared memory.
    defines : dict
        Macros.
    seed : int
        Of the random fills.
    """

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: tuple[ArgumentSpec, ...]
    shared: int = 0
    defines: dict[str, str] = field(default_factory=dict)
    seed: int = 0

    def open(self, path: Path | str) -> Kernel:
        """The kernel of the file that the launch is for."""
        path = Path(path)
        name = self.kernel or _only_kernel(Source.read(path, self.defines))
        return Kernel(path, name, self.defines)

    def values(self, signature: Signature) -> list[Any]:
        """The arguments in the kernel's order: what `Kernel.check` takes after grid and block.

        Raises
        ------
        ArgumentError
            If names are missing, unknown or given twice; the message lists the parameters.
        """
        given = [spec.name for spec in self.arguments]
        known = {parameter.name: parameter for parameter in signature.parameters}
        missing = [name for name in known if name not in given]
        unknown = [name for name in given if name not in known]
        twice = [name for name in known if given.count(name) > 1]
        problems = [
            f"{what} {', '.join(names)}"
            for what, names in (("missing", missing), ("unknown", unknown), ("twice", twice))
            if names
        ]
        if problems:
            expected = f"one for each parameter of {signature}"
            raise ArgumentError(
                OP, "--arg", expected, "; ".join(problems), _example(signature, missing)
            )
        rng = np.random.default_rng(self.seed)
        made = {spec.name: spec.make(rng) for spec in self.arguments}
        return [made[name] for name in known]

    def check(self, path: Path | str, profile: bool = False) -> Report:
        """Run the launch under the checker.

        Raises
        ------
        KernelCompileError, KernelLaunchError, ArgumentError
            The kernel does not compile, or the arguments do not fit it.
        """
        kernel = self.open(path)
        values = self.values(kernel.signature)
        return kernel.check(self.grid, self.block, *values, shared=self.shared, profile=profile)


def add_launch_options(parser: argparse.ArgumentParser) -> None:
    """The options of a launch, for the command and for `parse_launch`."""
    add = parser.add_argument
    add("--kernel", default="", metavar="NAME", help='the function, as in "scale<float>"')
    add("--grid", required=True, metavar="N[xN[xN]]", help="blocks: 4, 4x2 or 4x2x1")
    add("--block", required=True, metavar="N[xN[xN]]", help="threads of a block: 256 or 16x16")
    text = (
        "n=1000, alpha=0.5 or DTYPE[SIZES]:FILL as in x=float32[16,100]:rand; fills: rand, randn, "
        "zeros, ones, arange, full(V), randint(LOW,HIGH), empty (an output); @FILE.npy; then :out, "
        "or :inout for an array that may be written in part"
    )
    add("--arg", action="append", default=[], metavar="NAME=VALUE", help=text)
    add("--shared", default="0", metavar="BYTES", help="dynamic shared memory")
    add("--define", action="append", default=[], metavar="NAME=VALUE", help="a macro: TILE=16")
    add("--seed", default="0", metavar="N", help="of the random fills (default 0)")


def launch_of(args: argparse.Namespace) -> Launch:
    """The launch that the options of `add_launch_options` describe, or ArgumentError."""
    defines = {}
    for text in args.define:
        name, equals, value = text.partition("=")
        if not name.isidentifier():
            raise ArgumentError(OP, "--define", "NAME=VALUE", repr(text), "TILE=16")
        defines[name] = value if equals else "1"
    return Launch(
        kernel=args.kernel,
        grid=parse_grid(args.grid, "--grid"),
        block=parse_grid(args.block, "--block"),
        arguments=tuple(parse_argument(text) for text in args.arg),
        shared=_whole(args.shared, "--shared"),
        defines=defines,
        seed=_whole(args.seed, "--seed"),
    )


def parse_launch(text: str | Sequence[str]) -> Launch:
    """Read a launch from one line of text, quoted as for a shell, or from its words.

    Parameters
    ----------
    text : str or sequence of str
        The options --kernel, --grid, --block, --arg, --shared, --define and --seed.

    Raises
    ------
    ArgumentError
        Naming the option and what it takes.

    Examples
    --------
    >>> launch = parse_launch("--kernel scale --grid 4 --block 16x16 --arg n=1000")
    >>> launch.kernel, launch.grid, launch.block, launch.arguments[0].scalar
    ('scale', (4,), (16, 16), 1000)
    """
    parser = _LaunchParser(prog="launch", add_help=False, allow_abbrev=False)
    add_launch_options(parser)
    return launch_of(parser.parse_args(shlex.split(text) if isinstance(text, str) else text))


class _LaunchParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ArgumentError(f"launch: {message}")


def parse_grid(text: str, option: str = "--grid") -> tuple[int, ...]:
    """One to three extents, with x or commas between them.

    >>> parse_grid("4x2"), parse_grid("4,2"), parse_grid("256")
    ((4, 2), (4, 2), (256,))
    """
    extents = re.split("[x,]", text)
    if len(extents) > 3 or not all(re.fullmatch(r"\s*\d+\s*", extent) for extent in extents):
        raise ArgumentError(OP, option, "one to three whole numbers", repr(text), "4, 4x2 or 4x2x1")
    return tuple(int(extent) for extent in extents)


def _whole(text: str, option: str) -> int:
    if not text.isdecimal():
        raise ArgumentError(OP, option, "a whole number from 0", repr(text))
    return int(text)


def _only_kernel(source: Source) -> str:
    """The name of the file's only kernel, when it is no template."""
    found = kernels(source)
    if len(found) == 1 and not found[0].template:
        return found[0].name
    names = ", ".join(k.name + ("<...>" if k.template else "") for k in found) or "no kernel"
    expected = "a name, unless the file has one kernel alone that is no template"
    raise ArgumentError(OP, "--kernel", expected, "none", f"name one: {source.name} has {names}")


def _example(signature: Signature, missing: Sequence[str]) -> str:
    """Options that would name the missing parameters: a guess to start from."""
    options = []
    for p in signature.parameters:
        if p.name in missing:
            fill = "empty" if not p.const else "rand" if p.dtype.kind == "f" else "zeros"
            value = f"{p.dtype.name}[1000]:{fill}" if p.pointer else "1000"
            options.append(f"--arg {p.name}={value}")
    return " ".join(options) or "leave out what is too much"
