"""C types of kernel parameters: from the tokens of a declaration to dtype, pointer, const, lanes.

Sizes are those of 64-bit Linux, where `long` has 8 bytes, on the host and on the GPU.

Source: CUDA C++ Programming Guide, "Built-in Vector Types"; ISO C++17, [dcl.type.simple].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinygraph.cuda.reading.tokens import closing


@dataclass(frozen=True)
class KernelParameter:
    """One parameter of a kernel.

    Attributes
    ----------
    name : str
    ctype : str
        The C type with template arguments and typedefs put in: "const float4*", "unsigned int".
    dtype : numpy.dtype
        Of an array's elements; of a scalar's value.
    pointer : bool
    const : bool
        For a pointer: whether the kernel may only read through it.
    lanes : int
        Elements of the array that one element of the C type takes: 4 for float4.
    """

    name: str
    ctype: str
    dtype: np.dtype[Any]
    pointer: bool
    const: bool = False
    lanes: int = 1

    @property
    def alignment(self) -> int:
        """Bytes to which the address of a pointer is aligned."""
        packed = self.dtype.itemsize * self.lanes
        return self.dtype.itemsize if self.lanes == 3 else min(packed, 16)

    def __str__(self) -> str:
        return f"{self.ctype} {self.name}"


class UnreadableType(Exception):
    """A declaration that has no place in a launch, in the parts of an error message."""

    def __init__(self, expected: str, got: str, way_out: str = "") -> None:
        super().__init__(expected, got, way_out)
        self.expected, self.got, self.way_out = expected, got, way_out


@dataclass(frozen=True)
class _Type:
    """A type without a name; `const` is that of the pointee where it is a pointer."""

    base: str
    dtype: np.dtype[Any]
    lanes: int
    pointer: bool
    const: bool


_NAMED = {
    "bool": "?",
    "float": "f4",
    "double": "f8",
    "int8_t": "i1",
    "int16_t": "i2",
    "int32_t": "i4",
    "int64_t": "i8",
    "uint8_t": "u1",
    "uint16_t": "u2",
    "uint32_t": "u4",
    "uint64_t": "u8",
    "size_t": "u8",
    "ptrdiff_t": "i8",
    "ssize_t": "i8",
    "intptr_t": "i8",
    "uintptr_t": "u8",
    "uchar": "u1",
    "ushort": "u2",
    "uint": "u4",
    "ulong": "u8",
}
_VECTORS = {
    "char": "i1",
    "uchar": "u1",
    "short": "i2",
    "ushort": "u2",
    "int": "i4",
    "uint": "u4",
    "long": "i8",
    "ulong": "u8",
    "longlong": "i8",
    "ulonglong": "u8",
    "float": "f4",
    "double": "f8",
}
_INTEGER_WORDS = {"signed", "unsigned", "char", "short", "int", "long"}
_DROPPED = {
    "__restrict__",
    "__restrict",
    "restrict",
    "volatile",
    "__grid_constant__",
    "register",
    "typename",
    "struct",
    "enum",
    "class",
    "union",
    "std",
    "::",
    "constexpr",
    "__volatile__",
}
_STRUCT_WAY_OUT = (
    "pass its members as separate scalars, or as one array and a pointer to its element type"
)


class TypeReader:
    """Reads declarations of parameters with the type names that are in force.

    Parameters
    ----------
    aliases : mapping of name to tokens
        typedefs and the like; an empty tuple marks a struct.
    bound : mapping of name to tokens
        Template parameters with their arguments.
    """

    def __init__(
        self, aliases: Mapping[str, Sequence[str]], bound: Mapping[str, Sequence[str]]
    ) -> None:
        self.structs = {name for name, tokens in aliases.items() if not tokens}
        self.names = {name: tokens for name, tokens in aliases.items() if tokens}
        # A template parameter hides a type of that name, unless both mean the same.
        self.names |= {n: t for n, t in bound.items() if list(t) != [n]}

    def parameter(self, tokens: Sequence[str], unnamed: str) -> KernelParameter:
        """One parameter; `unnamed` is its name where the declaration gives none.

        Raises
        ------
        UnreadableType

        >>> print(TypeReader({}, {"T": ["float"]}).parameter(["const", "T", "*", "x"], ""))
        const float* x
        """
        tokens = _without_default_and_attributes(tokens)
        extents = tokens.index("[") if "[" in tokens else len(tokens)
        tokens, dims = tokens[:extents], tokens[extents:]
        if dims.count("[") > 1:
            raise UnreadableType("a pointer or a scalar", "an array of arrays", "pass `T*`")
        for sign, kind in (
            ("&", "a reference"),
            ("(", "a function or a pointer to one"),
            (".", "a parameter pack"),
        ):
            if sign in tokens:
                raise UnreadableType("a pointer or a scalar", kind)
        words = [token for token in tokens if token not in _DROPPED]
        name = words[-1] if self._is_name(words) else unnamed
        found = self._type(words[:-1] if self._is_name(words) else words, ())
        pointer = found.pointer or bool(dims)
        if found.pointer and dims:
            raise UnreadableType("a pointer or a scalar", "a pointer to pointers")
        if found.lanes > 1 and not pointer:
            raise UnreadableType(
                "a pointer or a scalar", f"{found.base}, a struct by value", _STRUCT_WAY_OUT
            )
        const = found.const and pointer
        ctype = f"{'const ' if const else ''}{found.base}{'*' if pointer else ''}"
        return KernelParameter(name, ctype, found.dtype, pointer, const, found.lanes)

    def _is_name(self, words: Sequence[str]) -> bool:
        """Whether the last word names the parameter: a type, or a sign, stands before it."""
        if len(words) < 2 or not words[-1].isidentifier() or words[-1] in _INTEGER_WORDS:
            return False
        return words[-1] != "const" and any(w.isidentifier() and w != "const" for w in words[:-1])

    def _type(self, words: Sequence[str], seen: tuple[str, ...]) -> _Type:
        """The type that words such as `const unsigned char *` stand for."""
        stars = words.count("*")
        pointee = list(words[: words.index("*")] if stars else words)
        const = "const" in pointee
        base = [word for word in pointee if word != "const"]
        if not base:
            raise UnreadableType("a type", "none")
        inner = self._base(base, seen)
        if stars > 1 or (stars and inner.pointer):
            raise UnreadableType(
                "a pointer or a scalar", "a pointer to pointers", "pass one array with offsets"
            )
        if inner.pointer:  # const before the name of a pointer type is const of the pointer
            return inner
        return _Type(inner.base, inner.dtype, inner.lanes, bool(stars), const or inner.const)

    def _base(self, words: list[str], seen: tuple[str, ...]) -> _Type:
        """The type that words without `const` and `*` stand for."""
        if all(word in _INTEGER_WORDS for word in words):
            return _integer(words)
        if len(words) == 1:
            (word,) = words
            if word in self.names and word not in seen:
                tokens = [t for t in self.names[word] if t not in _DROPPED]
                return self._type(tokens, (*seen, word))
            if word in self.structs:
                raise UnreadableType(
                    "a pointer or a scalar of a built-in type",
                    f"the struct {word}",
                    _STRUCT_WAY_OUT,
                )
            if word in _NAMED:
                return _Type(word, np.dtype(_NAMED[word]), 1, False, False)
            if word[-1] in "1234" and word[:-1] in _VECTORS:
                dtype = np.dtype(_VECTORS[word[:-1]])
                return _Type(word, dtype, int(word[-1]), False, False)
        got = " ".join(words)
        if got == "dim3":
            raise UnreadableType(
                "a pointer or a scalar", "dim3, a struct by value", _STRUCT_WAY_OUT
            )
        raise UnreadableType("a built-in type", f"{got!r}, which is not known here")


def _integer(words: Sequence[str]) -> _Type:
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
    return _Type(f"unsigned {base}" if unsigned else base, dtype, 1, False, False)


def _without_default_and_attributes(tokens: Sequence[str]) -> list[str]:
    """Cut `= default`, `[[...]]`, `__attribute__((...))` and `alignas(...)`."""
    found: list[str] = []
    at = 0
    while at < len(tokens) and tokens[at] != "=":
        if list(tokens[at : at + 2]) == ["[", "["]:
            at = closing(tokens, at)
        elif tokens[at] in ("__attribute__", "alignas", "__align__") and at + 1 < len(tokens):
            at = closing(tokens, at + 1)
        else:
            found.append(tokens[at])
        at += 1
    return found
