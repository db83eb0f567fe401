"""Names that load their module when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import FrameType
from typing import Any

from tinygraph.base.moved import HOMES


def lazy(
    package: str, homes: Mapping[str, str], place: str = ""
) -> tuple[Callable[[str], Any], Any]:
    """A package's `__getattr__` and `__dir__` (PEP 562) for names that wait for their first use.

    `homes` maps each name to the module that has it; a module of that name is meant itself.  For a
    name that is not there the error says what PyTorch's name of that `place` is called here
    (torch_names.py): an AttributeError, and of `from package import name` an ImportError.

    >>> getattr_, _ = lazy("os", {"sqrt": "math", "path": "os.path"})
    >>> getattr_("sqrt")(9.0)
    3.0
    """
    names = vars(sys.modules[package])

    def __getattr__(name: str) -> Any:
        if name not in homes and (former := HOMES.get(f"{package}.{name}")):
            return import_module(former)
        if name not in homes:
            if not place or name[0] == "_":  # which modules are asked for all the time
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            say = later("tinygraph.interop.torch_names", "no_such_name")
            loading = f"{package}.{name}" in sys.modules  # a module that is not done: found there
            imported = not loading and _is_imported(sys._getframe(1))
            absent = ImportError if imported else AttributeError
            raise absent(say(place, name, sorted({*names, *homes})))
        module = import_module(homes[name])
        names[name] = module if homes[name].endswith(f".{name}") else getattr(module, name)
        return names[name]

    return __getattr__, lambda: sorted({*names, *homes})


def _is_imported(frame: FrameType) -> bool:
    """Whether it stands at `from package import name`, which drops what an AttributeError says."""
    return frame.f_code.co_code[frame.f_lasti] == import_module("opcode").opmap["IMPORT_FROM"]


def later(home: str, name: str) -> Callable[..., Any]:
    """A function of a module that is loaded when it is first called.

    >>> later("math", "sqrt")(9.0)
    3.0
    """
    return lambda *args, **options: getattr(import_module(home), name)(*args, **options)
