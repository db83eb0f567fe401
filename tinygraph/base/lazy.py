"""Names that load their module when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import FrameType, SimpleNamespace
from typing import Any

from tinygraph.base.moved import HOMES


def lazy(
    package: str,
    homes: Mapping[str, str],
    place: str = "",
    made: Callable[[Any], Any] = lambda found: found,
) -> tuple[Callable[[str], Any], Any]:
    """A package's `__getattr__` and `__dir__` (PEP 562) for names that wait for their first use.

    `homes` maps each name to the module that has it; a module of that name is meant itself, with
    "module:" under any name, and with "module:other" what has another name there.  `made` is what
    becomes of what is found.  For a name that is not there the error says what PyTorch's name of
    that `place` is called here (torch_names.py): an AttributeError, and of `from package import
    name` an ImportError.

    >>> getattr_, _ = lazy("os", {"sqrt": "math", "path": "os.path"})
    >>> getattr_("sqrt")(9.0)
    3.0
    """
    names = vars(sys.modules[package])

    def __getattr__(name: str) -> Any:
        path = f"{package}.{name}"
        if name not in homes and (path in HOMES or is_part(path, homes)):
            return import_module(HOMES.get(path, path))
        if name not in homes:
            if not place or name[0] == "_":  # which modules are asked for all the time
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            say = found("tinygraph.interop.torch_names", "no_such_name")
            loading = path in sys.modules  # a module that is not done: found there
            imported = not loading and _is_imported(sys._getframe(1))
            absent = ImportError if imported else AttributeError
            raise absent(say(place, name, sorted({*names, *homes})))
        names[name] = made(found(homes[name], name))
        return names[name]

    return __getattr__, lambda: sorted({*names, *homes, *names.get("__all__", ())})


def found(home: str, name: str) -> Any:
    """A name's thing, which is loaded: see `lazy`."""
    place, _, other = home.partition(":")
    module = import_module(place)
    return module if home.endswith((f".{name}", ":")) else getattr(module, other or name)


def is_part(module: str, homes: Mapping[str, str]) -> bool:
    """Whether one of the homes lies in that module, or package."""
    return any(f"{home}.".replace(":", ".").startswith(f"{module}.") for home in homes.values())


def exports(module: str) -> dict[str, str]:
    """The names that a module imports, each with its home: "module:name".  Nothing is loaded.

    The module's code runs with import statements that take notes, for these ask `__import__` among
    the builtins; so it may bind what it imports to several names, and nothing else.
    """

    def note(home: str, _: Any, __: Any, names: tuple[str, ...], level: int) -> Any:
        return SimpleNamespace(**{name: f"{home}:{name}" for name in names})

    loader: Any = getattr(find_spec(module), "loader", None)
    homes: dict[str, Any] = {"__builtins__": {"__import__": note}}
    exec(loader.get_code(module), homes)
    return {name: home for name, home in homes.items() if name[0] != "_"}


class Above:
    """Things of higher floors: given as attributes, or found in their `homes` when first asked."""

    def __init__(self) -> None:
        self.homes: dict[str, str] = {}

    def __getattr__(self, name: str) -> Any:
        if name not in self.homes:
            raise AttributeError(f"nothing above is called {name!r}")
        thing = vars(self)[name] = found(self.homes[name], name)
        return thing


above: Any = Above()


def _is_imported(frame: FrameType) -> bool:
    """Whether it stands at `from package import name`, which drops what an AttributeError says."""
    return frame.f_code.co_code[frame.f_lasti] == import_module("opcode").opmap["IMPORT_FROM"]
