"""Child processes with a time limit; none outlives its parent, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(
    command: Sequence[str], limit: float, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run from the root of the repository, as a group of its own.

    A tool such as compute-sanitizer has children; a kernel that spins would keep the GPU busy if
    the tool alone were stopped.  Where this process itself is killed, the group goes too.

    Raises
    ------
    subprocess.TimeoutExpired
        After so many seconds; the whole group is then gone, and what it printed is in the error.
    """
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **(variables or {})},
        encoding="utf-8",
        errors="replace",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    with _killed_with_parent(process.pid):
        try:
            out, err = process.communicate(timeout=limit)
        except BaseException as error:  # the limit, or the user's Ctrl-C: no kernel stays running
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                error.output, error.stderr = out, err
            raise
    return subprocess.CompletedProcess(list(command), process.returncode, out, err)


@contextmanager
def _killed_with_parent(group: int) -> Iterator[None]:
    """Within it a watcher kills the group as soon as this process is gone, even by kill -9.

    The watcher reads from a pipe into which nothing is ever written: it ends with its writer.
    """
    read, write = os.pipe()
    watcher = subprocess.Popen(
        ["/bin/sh", "-c", f"read line; kill -9 -{group}"],
        stdin=read,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(read)
    try:
        yield
    finally:
        watcher.kill()
        watcher.wait()
        os.close(write)
