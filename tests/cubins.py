"""What machine code was compiled from, so that a stand-in for a GPU can run it in the emulator.

A driver is given the bytes of a cubin (cuModuleLoadData) and a symbol (cuModuleGetFunction), no
source.  tinygraph asks `tinygraph.cuda.nvrtc.compile` for each: `watch` puts a function around it
that remembers, and `emulated` finds source and kernel again.  The cubin is the real one.
"""

import functools
import hashlib
from typing import NamedTuple

from tinygraph.cuda import nvrtc
from tinygraph.cuda.emulator.loading import load
from tinygraph.cuda.reading.signature import parse
from tinygraph.cuda.reading.source import Source


class Made(NamedTuple):
    """A kernel that was compiled: the source with its macros, its name, its machine code."""

    source: Source
    name: str
    compiled: nvrtc.Compiled


_made = {}  # by the digest of the machine code, and the symbol in it


def watch():
    """Remember from now on what is compiled, or comes from the cache; once is enough."""
    if hasattr(nvrtc.compile, "__wrapped__"):
        return
    asked = nvrtc.compile

    @functools.wraps(asked)
    def compile(source, names, arch):
        found = asked(source, names, arch)
        for name, compiled in zip(names, found, strict=True):
            key = hashlib.sha256(compiled.cubin).digest(), compiled.symbol
            _made[key] = Made(source, name, compiled)
        return found

    nvrtc.compile = compile


def made(cubin, symbol):
    """What the kernel of that symbol was compiled from.

    Code of which nobody has heard is an error, as it is for a driver.
    """
    return _made[hashlib.sha256(cubin).digest(), symbol]


def emulated(cubin, symbol):
    """The signature of a kernel in machine code, and the kernel loaded into the emulator."""
    source, name, _ = made(cubin, symbol)
    signature = parse(source, name, None)
    return signature, load(source, signature, False)
