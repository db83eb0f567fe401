"""Loading: a kernel is compiled and loaded once in a process for each way of building."""

from __future__ import annotations

from importlib import import_module
from threading import Lock

from tinygraph.cuda.emulator.native import NativeKernel
from tinygraph.cuda.reading.signature import Signature
from tinygraph.cuda.reading.source import Source

_loaded: dict[tuple[str, str, tuple[str, ...], bool], NativeKernel] = {}
_lock = Lock()


def load(source: Source, signature: Signature, checked: bool) -> NativeKernel:
    """A kernel to run fast, or under the checker."""
    name = str(source.path or source.name)
    key = (source.digest + name, signature.function, tuple(signature.template_args), checked)
    with _lock:
        if key not in _loaded:
            kind = NativeKernel
            if checked:  # a program that checks nothing does not load the checker
                kind = import_module("tinygraph.cuda.emulator.checker").CheckedKernel
            _loaded[key] = kind(source, signature)
        return _loaded[key]
