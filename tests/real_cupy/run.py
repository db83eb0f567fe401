"""Run a module of ours on the real CuPy, without a GPU.

    python -m tests.real_cupy.run benchmarks.gpu --rehearse

It is as `python -m benchmarks.gpu --rehearse` on a machine with a GPU, but for time.  Ends with 1
if something was done that CUDA does not allow, and with 77 where that CuPy cannot be had.
"""

from __future__ import annotations

import runpy
import sys

from tests.real_cupy.install import CannotBuild, skipped
from tests.real_cupy.launches import Launches
from tests.real_cupy.machine import start


def main() -> int:
    try:
        machine = start()
    except CannotBuild as reason:
        return skipped(reason)
    Launches(machine)
    del sys.argv[0]
    try:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as end:
        status = int(end.code or 0)
    broken = list(dict.fromkeys(machine.violations()))
    for words in broken:
        print(f"CUDA does not allow: {words}", file=sys.stderr)
    return 1 if broken else status


if __name__ == "__main__":
    sys.exit(main())
