"""Loading: the compiled module of a kernel, made once in a process for each way of building."""

from __future__ import annotations

from importlib import import_module
from threading import Lock

from tinygraph.cuda.emulator.module import Module
from tinygraph.cuda.reading.signature import Signature
from tinygraph.cuda.reading.source import Source

_modules: dict[tuple[str, str, tuple[str, ...], bool], Module] = {}
_lock = Lock()


def load(source: Source, signature: Signature, checked: bool) -> Module:
    """The module of a kernel: to run fast, or under the checker."""
    name = str(source.path or source.name)
    key = (source.digest + name, signature.function, tuple(signature.template_args), checked)
    with _lock:
        if key not in _modules:
            _modules[key] = _kind(checked)(source, signature, checked)
        return _modules[key]


def _kind(checked: bool) -> type[Module]:
    """The class of module; a program that checks nothing does not load the checker."""
    if not checked:
        return Module
    kind: type[Module] = import_module("tinygraph.cuda.emulator.checker").CheckedModule
    return kind
