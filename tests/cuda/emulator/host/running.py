"""Programs of the tests, compiled and run; what they print is read from a pipe."""

import os
import tempfile
from functools import cache
from pathlib import Path

from tinygraph.cuda.emulator.host.building import build
from tinygraph.cuda.emulator.host.program import run
from tinygraph.cuda.reading.source import Source

PROGRAMS = Path(__file__).parent / "programs"


@cache
def built(path_or_text, checked=True, folders=()):
    return build([Source.read(path_or_text, None, folders)], checked)


def ran(path_or_text, *arguments, checked=True, timeout=60):
    """(the run, what it printed, what it said on stderr)"""
    program = built(path_or_text, checked)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        done = run(program, arguments, timeout, out.fileno(), err.fileno())
        texts = []
        for file in (out, err):
            os.lseek(file.fileno(), 0, os.SEEK_SET)
            texts.append(file.read().decode())
    return done, *texts


def finding(done):
    """The only finding of a run."""
    (report,) = done.reports
    (found,) = report.findings
    return report, found
