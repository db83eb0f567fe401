"""Child processes with a time limit, stopped with all that they started."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(
    command: Sequence[str], limit: float, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run from the root of the repository, as a group of its own.

    A tool such as compute-sanitizer has children; a kernel that spins would keep the GPU busy if
    the tool alone were stopped.

    Raises
    ------
    subprocess.TimeoutExpired
        After so many seconds; the whole group is then gone.
    """
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **(variables or {})},
        text=True,
        errors="replace",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=limit)
    except BaseException:  # the limit, or the user's Ctrl-C: neither may leave a kernel running
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return subprocess.CompletedProcess(list(command), process.returncode, out, err)
