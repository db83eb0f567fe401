"""The other end of a worker's pipe: starts it, asks it, stops it, and says why it failed."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.children import ROOT

PREPARE_LIMIT = 300.0  # seconds: until a library is imported and the training is built
ANSWER_LIMIT = 300.0  # of one request: the first step may compile


class SideFailed(Exception):
    """A side cannot go on; the message says why."""


class SideNotOffered(SideFailed):
    """A side is no failure, but cannot be with this version of its library."""


class Client:
    """One side's process.

    Parameters
    ----------
    command : sequence of str
        Runs benchmarks.cpu.worker with its arguments, from the root of the repository.
    variables : mapping
        The whole environment of the process.

    Raises
    ------
    SideFailed
        From any method: the process broke, ended, or did not answer in time.
    """

    def __init__(
        self, command: Sequence[str], variables: Mapping[str, str], limit: float = PREPARE_LIMIT
    ) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (as long as the process)
        self._rest = b""
        try:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=dict(variables),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                start_new_session=True,
            )
        except OSError as error:
            self._errors.close()
            raise SideFailed(f"could not be started: {error}") from error
        try:
            self.about = str(self._answer(limit)["about"])
        except BaseException:
            self.close()
            raise

    def ask(self, request: str, limit: float = ANSWER_LIMIT) -> dict[str, Any]:
        """Send one line, such as "run 5", and wait for its answer."""
        pipe = self._process.stdin
        if pipe is None:
            raise SideFailed("has no standard input")
        try:
            pipe.write(f"{request}\n".encode())
            pipe.flush()
        except OSError as error:
            raise SideFailed(self._how_it_ended()) from error
        return self._answer(limit)

    def close(self) -> None:
        """End the process with all that it started."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe is not None:
                _close(pipe)

    def _answer(self, limit: float) -> dict[str, Any]:
        line = self._line(time.monotonic() + limit, limit)
        try:
            message = json.loads(line)
        except ValueError as error:
            raise SideFailed(f"answered {line[:80]!r}, which is no JSON") from error
        if "not offered" in message:
            raise SideNotOffered(message["not offered"])
        if "error" in message:
            raise SideFailed(message["error"])
        return dict(message)

    def _line(self, deadline: float, limit: float) -> bytes:
        pipe = self._process.stdout
        if pipe is None:
            raise SideFailed("has no standard output")
        while b"\n" not in self._rest:
            ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise SideFailed(f"did not answer in {limit:g} s")
            more = os.read(pipe.fileno(), 65536)
            if not more:
                raise SideFailed(self._how_it_ended())
            self._rest += more
        line, self._rest = self._rest.split(b"\n", 1)
        return line

    def _how_it_ended(self) -> str:
        """The exit code or signal, and the last line on standard error."""
        try:
            code = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            return "closed its output"
        how = f"ended with code {code}" if code >= 0 else f"was ended by signal {-code}"
        self._errors.seek(0)
        words = self._errors.read().decode(errors="replace").strip().splitlines()
        return f"{how}: {words[-1].strip()[:300]}" if words else how


def _close(pipe: Any) -> None:
    """Close a pipe whose other end may be gone with bytes unread."""
    try:
        pipe.close()
    except OSError:
        return
