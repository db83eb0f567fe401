"""The `tinygraph` command.

Each command is one function (commands.py, machine.py), which returns what `--json` prints and shows
the rest with `print`; `PARSERS` (arguments.py) lists them.  Other packages have more of them, as
entry points of the group `tinygraph.commands`.

Exit codes: 0 ok, 1 failed while running, 2 bad usage or bad input, 130, 143 or 129
stopped by a signal: SIGINT, SIGTERM, SIGHUP.
A command that looks for mistakes says in its answer whether it is `ok`; 1 where it is not.
run-cuda ends with the exit status of the program that it ran.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from io import StringIO

from tinygraph.base import (
    ArgumentError,
    CheckpointError,
    DatasetError,
    DtypeError,
    ShapeError,
    TinygraphError,
)
from tinygraph.base.json_text import to_json
from tinygraph.base.streams import abandon, say, standing
from tinygraph.cli.arguments import PARSERS, parse
from tinygraph.distributed import end_together, world
from tinygraph.training import Stopped

__all__ = ["PARSERS", "main", "parse"]

BAD_INPUT = (ArgumentError, DatasetError, DtypeError, ShapeError)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        0, 1, 2, 130 (SIGINT), 143 (SIGTERM) or 129 (SIGHUP).

    Examples
    --------
    >>> from tinygraph.cli import main
    >>> main(["recipes"])  # doctest: +ELLIPSIS
    perceptron ...linear_regression ...numba_cnn ...
    0
    """
    with standing():
        try:
            return _answered(sys.argv[1:] if argv is None else argv)
        finally:
            try:
                sys.stdout.flush()
            except OSError:  # what was not written goes nowhere, also at the end of Python
                abandon(sys.stdout)


def _answered(argv: Sequence[str]) -> int:
    command = ""
    try:
        args = parse(argv)
        command, leads = args.command, world().rank == 0
        with nullcontext() if leads and not args.json else redirect_stdout(StringIO()):
            answer = args.run_command(args)
        if leads and args.json:
            print(to_json(f"{command} --json", answer, indent=2))
        sys.stdout.flush()
        return int(answer.get("exit_status", 0 if answer.get("ok", True) else 1))
    except BAD_INPUT as error:
        return _fail(str(error), 2)
    except CheckpointError as error:  # while training it is the disk, otherwise what was named
        return _fail(str(error), 1 if command == "train" else 2)
    except TinygraphError as error:
        return _fail(str(error), 1)
    except MemoryError as error:
        way_out = "free some memory"
        if command in ("train", "resume"):
            way_out = "a smaller --batch-size or fewer --filters need less"
        return _fail(f"not enough memory. {error}. Way out: {way_out}", 1)
    except BrokenPipeError:  # the reader of stdout has gone, as in `tinygraph ... | head -1`
        abandon(sys.stdout)
        return 1
    except OSError as error:
        return _fail(f"{error.filename or 'the system'}: {error.strerror or error}", 1)
    except Stopped as stop:
        if world().rank == 0:  # all ranks stop, after the same batch
            say(stop, sys.stderr)
        return 128 + stop.signal
    except KeyboardInterrupt:
        return end_together("interrupted", 130)


def _fail(message: str, code: int) -> int:
    return end_together(f"error: {message}", code)
