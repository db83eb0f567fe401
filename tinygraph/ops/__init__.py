"""Every op, one file each in the wing of its kind, its kernel beside it.  One export line an op.

These lines stand in exports.py.  A function is loaded with its file when it is first used, here or
as a name of tinygraph or a method of Tensor, and is a plain name from then on.
"""

import sys as _sys
from functools import cache as _cache
from functools import partial as _partial
from importlib import import_module as _import
from types import ModuleType as _Module
from typing import TYPE_CHECKING

from tinygraph.base import lazy as _lazy
from tinygraph.ops.common.spelling import spelled as _spelled

if TYPE_CHECKING:
    from tinygraph.ops.exports import *  # noqa: F403

__mathematics__ = "of the file"  # whose docstring derives its ops: show/stepping/formulas.py
_HOMES = _lazy.exports("tinygraph.ops.exports")
EXPORTS = [*_HOMES]
globals()["__all__"] = EXPORTS  # for `import *`; type checkers, which read it as text, take all


def _file_of(wing: str, name: str) -> _Module:
    """`tg.ops.windows.conv2d`, a file that may not be loaded yet, by the wing's `__getattr__`."""
    if not _lazy.is_part(f"{wing}.{name}", _HOMES):
        raise AttributeError(f"module {wing!r} has no attribute {name!r}")
    return _import(f"{wing}.{name}")


class _Ops(_Module):
    """`import tinygraph.ops.relu`, a former path, would set the module in the function's place."""

    def __setattr__(self, name: str, value: object) -> None:
        if not isinstance(value, _Module):
            super().__setattr__(name, value)
        elif name not in _HOMES:
            vars(value).setdefault("__getattr__", _partial(_file_of, value.__name__))
            super().__setattr__(name, value)


_lazy.above.homes |= _HOMES | {
    "add_arrays": "tinygraph.ops.elementwise.arithmetic:add_arrays",
    "times": "tinygraph.ops.elementwise.arithmetic:times",
    "to": "tinygraph.ops.common.to:to",
}
_lazy.above.spelled = _cache(_spelled)

if not TYPE_CHECKING:
    __getattr__, __dir__ = _lazy.lazy(__name__, _HOMES, made=_lazy.above.spelled)
    _sys.modules[__name__].__class__ = _Ops
