"""Which CuPy a rehearsal has: none, or the real one on a driver that needs no GPU.

    make gpu ARGS=--rehearse                                     none: device "emulator"
    python -m tests.real_cupy.run benchmarks.gpu --rehearse      that one: device "cuda"

With that driver the child processes of a section have it too.
"""

from __future__ import annotations

import sys
from typing import Any

_STARTER, _MACHINE = "tests.real_cupy.run", "tests.real_cupy.machine"


def cupy() -> Any:
    """The CuPy of this process where it runs on the driver that needs no GPU; else None."""
    machines = getattr(sys.modules.get(_MACHINE), "started", [])
    return machines[0].cupy if machines else None


def command(module: str, *words: object) -> list[str]:
    """How a module is run in a process of its own, with that driver if this process has it."""
    starter = [_STARTER] if cupy() else []
    return [sys.executable, "-m", *starter, module, *map(str, words)]
