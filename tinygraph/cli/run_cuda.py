"""`tinygraph run-cuda`: a CUDA program, run as it stands on the emulator.

    tinygraph run-cuda saxpy.cu 1000

What the program prints goes where it would go; what the checker finds is printed when it is done.
The exit status is the program's, and 1 where the checker has found something.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from tinygraph.base import ArgumentError, KernelCompileError
from tinygraph.cli.check_kernel import macro
from tinygraph.cli.options import Options, real_number
from tinygraph.cuda.reading.source import Source

OP = "run-cuda"
RUN_CUDA: Options = {
    "FILE": "a .cu file with main",
    "ARGS": ("the program's arguments; -- before those that look like ours", {"nargs": "..."}),
    "--with FILE": (
        "another file of the program; may be given again",
        {"dest": "others", "action": "append", "default": []},
    ),
    "--no-check": "run fast, without the checker",
    "--include DIR": (
        "where its headers lie; may be given again",
        {"dest": "include", "action": "append", "default": []},
    ),
    "--define NAME=VALUE": ("a macro: TILE=16", {"action": "append", "default": [], "type": macro}),
    "--timeout S": (
        "seconds after which the program is ended (default 600)",
        {"type": real_number(0.01), "default": 600.0},
    ),
}


def run_cuda(args: Namespace) -> dict[str, Any]:
    """Compile a program, run it in a process of its own, and print what the checker found."""
    building = import_module("tinygraph.cuda.emulator.host.building")
    program = import_module("tinygraph.cuda.emulator.host.program")
    folders = [_folder(name) for name in args.include]
    defines = dict(args.define)
    try:
        sources = [Source.read(_path(f), defines, folders) for f in (args.file, *args.others)]
        built = building.build(sources, not args.no_check)
    except KernelCompileError as error:
        raise ArgumentError(str(error)) from None  # the file: bad input
    sys.stdout.flush()
    stdout = 2 if args.json else None  # stdout is for the JSON object alone
    done = program.run(built, args.args, args.timeout, stdout=stdout)
    colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    for report in done.reports:
        print(report.text(colour=colour), file=sys.stderr)
    for note in done.notes:
        print(note, file=sys.stderr)
    return {
        "file": args.file,
        "checked": not args.no_check,
        "ok": done.ok and not done.status,
        "program_status": done.status,
        "exit_status": done.status or int(not done.ok),
        "reports": [report.to_dict() for report in done.reports],
        "notes": done.notes,
    }


def _path(name: str) -> str:
    if not os.path.isfile(name):
        raise ArgumentError(OP, "FILE", "a .cu file", repr(name), "correct the path")
    return os.path.abspath(name)


def _folder(name: str) -> str:
    if not os.path.isdir(name):
        raise ArgumentError(OP, "--include", "a folder", repr(name), "correct the path")
    return name


def own_options_first(argv: Sequence[str]) -> list[str]:
    """The arguments of the command with its own options in front of the file.

    `run-cuda FILE.cu 1000 --no-check` means what `run-cuda --no-check FILE.cu 1000` means; what
    comes after `--` belongs to the program.

    >>> own_options_first(["saxpy.cu", "-n", "8", "--no-check", "--timeout", "5", "--", "--json"])
    ['--no-check', '--timeout', '5', 'saxpy.cu', '-n', '8', '--json']
    """
    takes = {name.partition(" ")[0]: " " in name for name in (*RUN_CUDA, "--json", "--help", "-h")}
    ours: list[str] = []
    rest: list[str] = []
    at = 0
    while at < len(argv):
        word = argv[at]
        if word == "--":
            rest += argv[at + 1 :]
            break
        option = word.partition("=")[0]
        if option.startswith("-") and option in takes:
            last = at + 1 + (takes[option] and "=" not in word)
            ours += argv[at:last]
            at = last
            continue
        rest.append(word)
        at += 1
    return [*ours, *rest]
