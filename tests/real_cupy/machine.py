"""The driver of driver/ in this process, and the real CuPy on it."""

from __future__ import annotations

import ctypes
import importlib.abc
import importlib.util
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tests.real_cupy.build import MODULE, build
from tinygraph.base import build_cache

_RUNTIME = MODULE.replace("/", ".")
_FUNCTIONS = {
    "machine_hooks": (None, [ctypes.c_void_p, ctypes.c_void_p]),
    "machine_idle": (None, [ctypes.c_int]),
    "machine_failed": (None, [ctypes.c_char_p]),
    "machine_memory": (None, [ctypes.c_size_t]),
    "machine_on_device": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t]),
    "machine_violations": (ctypes.c_int, []),
    "machine_violations_forget": (None, []),
    "machine_violation": (ctypes.c_char_p, [ctypes.c_int]),
    "machine_calls": (ctypes.c_void_p, [ctypes.c_void_p]),
    "machine_calls_name": (ctypes.c_char_p, [ctypes.c_void_p]),
    "machine_calls_count": (ctypes.c_long, [ctypes.c_void_p]),
    "machine_calls_forget": (None, []),
    "machine_function_name": (ctypes.c_char_p, [ctypes.c_void_p]),
    "machine_function_module": (ctypes.c_void_p, [ctypes.c_void_p]),
    "machine_image": (ctypes.c_void_p, [ctypes.c_void_p]),
    "machine_image_size": (ctypes.c_size_t, [ctypes.c_void_p]),
}


class _Lent(importlib.abc.MetaPathFinder):
    """Finds CuPy's module `runtime` in the library that was built for our driver."""

    def __init__(self, library: Path) -> None:
        self.library = library

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name == _RUNTIME:
            return importlib.util.spec_from_file_location(name, self.library)
        return None


class Machine:
    """The driver; `start` makes the one of this process.

    Attributes
    ----------
    library : ctypes.CDLL
    cupy : module
        The real one.
    """

    def __init__(self) -> None:
        if "cupy" in sys.modules:
            raise RuntimeError("another CuPy is imported already")
        driver, runtime = build()
        # Kept in memory under the name libcuda.so.1, by which CuPy then asks for it.
        self.library = ctypes.CDLL(str(driver), mode=os.RTLD_GLOBAL | os.RTLD_NOW)
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(self.library, name)
            function.restype, function.argtypes = result, arguments
        sys.meta_path.insert(0, _Lent(runtime))
        # what CuPy compiles is for this driver's architecture, and no user's
        os.environ["CUPY_CACHE_DIR"] = str(build_cache.folder() / "cupy")
        import cupy
        import cupyx  # noqa: F401

        self.cupy = cupy

    # ---- what happened

    def violations(self) -> list[str]:
        """What CUDA's rules do not allow, in the order in which it was done; told once."""
        count = self.library.machine_violations()
        found = [self.library.machine_violation(i).decode() for i in range(count)]
        self.library.machine_violations_forget()
        return found

    def calls(self) -> Counter[str]:
        """How often each function of CUDA was called since `forget_calls`."""
        found: Counter[str] = Counter()
        one = self.library.machine_calls(None)
        while one:
            name = self.library.machine_calls_name(one).decode()
            found[name] = self.library.machine_calls_count(one)
            one = self.library.machine_calls(one)
        return +found

    def forget_calls(self) -> None:
        self.library.machine_calls_forget()


started: list[Machine] = []  # the one of this process, or none


def start() -> Machine:
    """The machine of this process; launches do nothing before launches.py is told of it."""
    if not started:
        started.append(Machine())
    return started[0]
