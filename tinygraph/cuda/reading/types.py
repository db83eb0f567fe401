"""C types of kernel parameters: from the tokens of a declaration to dtype, pointer, const, lanes.

Sizes are those of 64-bit Linux, where `long` has 8 bytes, on the host and on the GPU.

Source: CUDA C++ Programming Guide, "Built-in Vector Types"; ISO C++17, [dcl.type.simple].
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from tinygraph.base import KernelCompileError
from tinygraph.cuda.reading.tokens import closing, code


@dataclass(frozen=True)
class KernelParameter:
    """One parameter of a kernel."""

    name: str
    ctype: str  # with template arguments and typedefs put in: "const float4*", "unsigned int"
    dtype: np.dtype[Any]  # of an array's elements; of a scalar's value
    pointer: bool
    const: bool = False  # of a pointer: whether the kernel may only read through it
    lanes: int = 1  # elements of the array that one element of the C type takes: 4 for float4

    @property
    def alignment(self) -> int:
        """Bytes to which the address of a pointer is aligned."""
        packed = self.dtype.itemsize * self.lanes
        return self.dtype.itemsize if self.lanes == 3 else min(packed, 16)

    @cached_property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest value of an integer."""
        limits = np.iinfo(self.dtype)
        return int(limits.min), int(limits.max)

    def __str__(self) -> str:
        return f"{self.ctype} {self.name}"


_NAMED = {
    **{f"int{8 * n}_t": f"i{n}" for n in (1, 2, 4, 8)},
    **{f"uint{8 * n}_t": f"u{n}" for n in (1, 2, 4, 8)},
    **{"bool": "?", "float": "f4", "double": "f8"},
    **{"uchar": "u1", "ushort": "u2", "uint": "u4", "ulong": "u8"},
    **dict.fromkeys(("half", "__half", "__nv_half"), "f2"),
    **dict.fromkeys(("nv_bfloat16", "__nv_bfloat16"), "u2"),  # its bits: numpy has no such type
    **{"size_t": "u8", "ptrdiff_t": "i8", "ssize_t": "i8", "intptr_t": "i8", "uintptr_t": "u8"},
}
_VECTORS = {
    **{"char": "i1", "short": "i2", "int": "i4", "long": "i8", "longlong": "i8"},
    **{"uchar": "u1", "ushort": "u2", "uint": "u4", "ulong": "u8", "ulonglong": "u8"},
    **{"float": "f4", "double": "f8", "half": "f2", "__half": "f2", "__nv_half": "f2"},
    **{"nv_bfloat16": "u2", "__nv_bfloat16": "u2"},
}
_INTEGER_WORDS = {"signed", "unsigned", "char", "short", "int", "long"}
_DROPPED = re.compile(
    r"__restrict(__)?|restrict|volatile|__volatile__|__grid_constant__|register|constexpr|"
    r"typename|struct|enum|class|union|std|::"
)
_ATTRIBUTES = ("__attribute__", "alignas", "__align__")

DECLARE = 'declare them: Kernel(..., parameters={"x": "const float*", "n": "int"})'
_MEMBERS = "pass its members as separate scalars, or as one array and a pointer to its element type"
_PLAIN = "a pointer or a scalar"


class TypeReader:
    """Reads declarations of parameters with the type names that are in force.

    Parameters
    ----------
    where : str
        Whose parameters they are, for messages.
    aliases : mapping of name to tokens
        typedefs and the like; an empty tuple marks a struct.
    bound : mapping of name to tokens
        Template parameters with their arguments.
    """

    def __init__(
        self, where: str, aliases: Mapping[str, Sequence[str]], bound: Mapping[str, Sequence[str]]
    ) -> None:
        self.where, self.text = where, ""
        self.structs = {name for name, tokens in aliases.items() if not tokens}
        self.names = {name: tokens for name, tokens in aliases.items() if tokens}
        # A template parameter hides a type of that name, unless both mean the same.
        self.names |= {n: t for n, t in bound.items() if list(t) != [n]}

    def parameter(self, text: str, unnamed: str) -> KernelParameter:
        """One parameter; `unnamed` is its name where the declaration gives none.

        Raises
        ------
        KernelCompileError
            What it declares has no place in a launch.

        >>> print(TypeReader("k", {}, {"T": ["float"]}).parameter("const T* x", ""))
        const float* x
        """
        self.text = text.strip()
        tokens = _without_default_and_attributes(code(text))
        extents = tokens.index("[") if "[" in tokens else len(tokens)
        tokens, dims = tokens[:extents], tokens[extents:]
        if dims.count("[") > 1:
            self._refuse(_PLAIN, "an array of arrays", "pass `T*`")
        for sign, kind in (
            ("&", "a reference"),
            ("(", "a function or a pointer to one"),
            (".", "a parameter pack"),
        ):
            if sign in tokens:
                self._refuse(_PLAIN, kind)
        words = [token for token in tokens if not _DROPPED.fullmatch(token)]
        named = self._is_name(words)
        found = self._type(words[:-1] if named else words, ())
        if found.pointer and dims:
            self._refuse(_PLAIN, "a pointer to pointers")
        pointer = found.pointer or bool(dims)
        if found.lanes > 1 and not pointer:
            self._refuse(_PLAIN, f"{found.ctype}, a struct by value", _MEMBERS)
        const = found.const and pointer
        ctype = f"{'const ' if const else ''}{found.ctype}{'*' if pointer else ''}"
        name = words[-1] if named else unnamed
        return replace(found, name=name, ctype=ctype, pointer=pointer, const=const)

    def _refuse(self, expected: str, got: str, way_out: str = DECLARE) -> NoReturn:
        raise KernelCompileError(self.where, self.text, expected, got, way_out)

    def _is_name(self, words: Sequence[str]) -> bool:
        """Whether the last word names the parameter: a type, or a sign, stands before it."""
        if len(words) < 2 or not words[-1].isidentifier() or words[-1] in _INTEGER_WORDS:
            return False
        return words[-1] != "const" and any(w.isidentifier() and w != "const" for w in words[:-1])

    def _type(self, words: Sequence[str], seen: tuple[str, ...]) -> KernelParameter:
        """The type that words such as `const unsigned char *` stand for, as a nameless parameter.

        Its `ctype` is the element's, and `const` that of what a pointer points to.
        """
        stars = words.count("*")
        pointee = list(words[: words.index("*")] if stars else words)
        base = [word for word in pointee if word != "const"]
        if not base:
            self._refuse("a type", "none")
        inner = self._base(base, seen)
        if stars > 1 or (stars and inner.pointer):
            self._refuse(_PLAIN, "a pointer to pointers", "pass one array with offsets")
        if inner.pointer:  # const before the name of a pointer type is const of the pointer
            return inner
        return replace(inner, pointer=bool(stars), const="const" in pointee or inner.const)

    def _base(self, words: list[str], seen: tuple[str, ...]) -> KernelParameter:
        """The type that words without `const` and `*` stand for."""
        if all(word in _INTEGER_WORDS for word in words):
            return _integer(words)
        got = " ".join(words)
        if got in self.names and got not in seen:
            tokens = [token for token in self.names[got] if not _DROPPED.fullmatch(token)]
            return self._type(tokens, (*seen, got))
        if got in self.structs:
            self._refuse(f"{_PLAIN} of a built-in type", f"the struct {got}", _MEMBERS)
        if got in _NAMED:
            return KernelParameter("", got, np.dtype(_NAMED[got]), False)
        if got[-1] in "1234" and got[:-1] in _VECTORS:
            dtype = np.dtype(_VECTORS[got[:-1]])
            return KernelParameter("", got, dtype, False, lanes=int(got[-1]))
        if got == "dim3":
            self._refuse(_PLAIN, "dim3, a struct by value", _MEMBERS)
        self._refuse("a built-in type", f"{got!r}, which is not known here")


def _integer(words: Sequence[str]) -> KernelParameter:
    """char, short, int, long and long long, signed or unsigned, in any order of the words."""
    unsigned = "unsigned" in words
    if "char" in words:
        size, base = 1, "char" if "signed" not in words else "signed char"
    elif "short" in words:
        size, base = 2, "short"
    elif "long" in words:
        size, base = 8, " ".join(["long"] * words.count("long"))
    else:
        size, base = 4, "int"
    dtype = np.dtype(f"{'u' if unsigned else 'i'}{size}")
    return KernelParameter("", f"unsigned {base}" if unsigned else base, dtype, False)


def _without_default_and_attributes(tokens: Sequence[str]) -> list[str]:
    """Cut `= default`, `[[...]]`, `__attribute__((...))` and `alignas(...)`."""
    found: list[str] = []
    at = 0
    while at < len(tokens) and tokens[at] != "=":
        if list(tokens[at : at + 2]) == ["[", "["]:
            at = closing(tokens, at)
        elif tokens[at] in _ATTRIBUTES and at + 1 < len(tokens):
            at = closing(tokens, at + 1)
        else:
            found.append(tokens[at])
        at += 1
    return found
