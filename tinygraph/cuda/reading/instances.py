"""Which kernels a .cu file holds: the functions, types and macros that are compiled and checked.

A kernel that is a template becomes code only once its types are named.  `template <typename T>` is
the element type of an op, and stands for float and double, as ops launch it.  Where that is not so,
the file names the instances in its header comment, for the compile check, tests and readers:

    // instances: cumulative_sums<float, 32>, cumulative_sums<double, 32>

Macros stand in parentheses, one statement for one set of macros.  A statement that ends with a
comma goes on in the next line, and `for T in ...` repeats the names that hold the word T:

    // instances (TILE=16): gemm<T, false, true>, gemm<T, true, false>,
    //                      gemm<T, false, false> for T in float, double

A bar stands between choices: forward|backward<T, Exp|Log> is four names.

Both comment forms will do.  A kernel of the file that no statement names is the one that it is, or
its instances for float and double.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

from tinygraph.base import ArgumentError, as_path
from tinygraph.cuda.reading.signature import kernels
from tinygraph.cuda.reading.source import Source, kernel_files
from tinygraph.cuda.reading.tokens import split_text, stated

ELEMENT_TYPES = ("float", "double")  # what T stands for where nothing else is stated

_STATEMENT = re.compile(r"instances\s*(?:\((?P<macros>[^)]*)\))?\s*:")
_REPEAT = re.compile(r"(?P<names>.*\S)\s+for\s+(?P<word>\w+)\s+in\s+(?P<types>.+)")
_NAME = re.compile(r"[A-Za-z_][\w:|]*\s*(<.*>)?")
_MACRO = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*(?:=\s*(?P<value>.*\S))?\s*")


class Instance(NamedTuple):
    """One kernel as it is compiled: the file, the name with its types, and the macros."""

    path: Path
    name: str
    defines: dict[str, str]

    @property
    def label(self) -> str:
        """The name, and the macros behind it."""
        macros = "".join(f" {name}={value}" for name, value in self.defines.items())
        return self.name + macros

    def __str__(self) -> str:
        return f"{self.path.name}: {self.label}"


def inventory(paths: Iterable[Path | str] | None = None) -> list[Instance]:
    """The instances of .cu files, by default of all that tinygraph ships.

    Parameters
    ----------
    paths : iterable of path, optional
        The files; by default those of tinygraph/cuda, in the order of their names.

    Returns
    -------
    list of Instance
        Tuples (path, name, defines), as `Kernel(path, name, defines)` takes them.

    Raises
    ------
    ArgumentError
        An `instances` statement that cannot be read, or a file of templates without one.
    KernelCompileError
        A file that is not there.

    Examples
    --------
    >>> all(instance.path.suffix == ".cu" for instance in inventory())
    True
    """
    if paths is None:
        paths = kernel_files()
    found = [as_path("inventory", "paths", path) for path in paths]
    return [instance for path in found for instance in instances(path)]


def instances(path: Path) -> list[Instance]:
    """The instances of one .cu file."""
    source = Source.read(path)
    listed = [
        Instance(path, name, macros)
        for line, macros, text in _statements(source)
        for name in _names(text, f"{source.name}:{line}")
    ]
    stated = {instance.name.partition("<")[0].strip() for instance in listed}
    unnamed = [kernel for kernel in kernels(source) if kernel.name not in stated]
    for kernel in unnamed:
        if kernel.template == ("T",):
            listed += [Instance(path, f"{kernel.name}<{kind}>", {}) for kind in ELEMENT_TYPES]
        elif not kernel.template:
            listed.append(Instance(path, kernel.name, {}))
    if not listed:
        expected = "a kernel, or the types of one that is a template of more than T"
        raise _unreadable(source.name, expected, "none")
    return listed


def _statements(source: Source) -> Iterator[tuple[int, dict[str, str], str]]:
    """Line number, macros and joined names of each `instances` statement."""
    for number, match, text in stated(source.text, _STATEMENT, lambda t: t.endswith(",")):
        place = f"{source.name}:{number}"
        if text.endswith(","):
            raise _unreadable(place, "a name after the last comma", "none")
        yield number, macros_of(match["macros"] or "", place), text


def macros_of(text: str, place: str) -> dict[str, str]:
    """TILE=16, DEBUG as {"TILE": "16", "DEBUG": "1"}."""
    macros = {}
    for part in split_text(text):
        match = _MACRO.fullmatch(part)
        if not match:
            raise _unreadable(place, "macros as NAME=VALUE", repr(part))
        macros[match["name"]] = match["value"] or "1"
    return macros


def _names(text: str, place: str) -> list[str]:
    repeat = _REPEAT.fullmatch(text)
    names = split_text(repeat["names"] if repeat else text)
    for name in names:
        if not _NAME.fullmatch(name):
            raise _unreadable(place, "kernel names as NAME or NAME<TYPE, ...>", repr(name))
    if not names:
        raise _unreadable(place, "kernel names", "none")
    names = [choice for name in names for choice in _choices(name)]
    if not repeat:
        return names
    word = re.compile(rf"\b{repeat['word']}\b")
    kinds = split_text(repeat["types"])
    if not all(word.search(name) for name in names):
        raise _unreadable(place, f"the word {repeat['word']} in every name", repr(text))
    return [word.sub(kind, name) for name in names for kind in kinds]


def _choices(name: str) -> list[str]:
    """The names that one with bars stands for.

    >>> _choices("forward<T, Exp|Log>")
    ['forward<T, Exp>', 'forward<T, Log>']
    """
    if "|" not in name:
        return [name]
    head, bracket, arguments = name.removesuffix(">").partition("<")
    sets = [part.split("|") for part in (head, *split_text(arguments))]
    rows = [[choice.strip() for choice in row] for row in product(*sets)]
    return [f"{row[0]}<{', '.join(row[1:])}>" if bracket else row[0] for row in rows]


def _unreadable(place: str, expected: str, got: str) -> ArgumentError:
    way_out = "instances: NAME<float>, NAME<double>   or   instances (TILE=16): NAME"
    return ArgumentError(place, "instances", expected, got, way_out)
