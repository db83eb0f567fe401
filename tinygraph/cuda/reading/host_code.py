"""The host half of a file, cut out: what is left are its kernels and what they may call.

A file as people have it holds `main`, error macros, timers and `<<<>>>` beside its kernels.  These
go: functions that are neither `__global__` nor `__device__` nor constexpr; declarations that speak
of the C++ library or of the CUDA runtime; include lines of headers that a kernel cannot have.
Their line breaks stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tinygraph.cuda.reading.tokens import Token

_DEVICE = {"__global__", "__device__", "__constant__", "__shared__", "constexpr", "__managed__"}
_INCLUDE = re.compile(r"\s*#\s*include\s*([<\"])([^>\"]+)[>\"]")
_MACRO = re.compile(r"\s*#\s*define\s+(\w+)")
_RUNTIME = re.compile(r"cuda[A-Z]\w*")
_WORD = re.compile(r"\w+")


def has_host_code(text: list[Token]) -> bool:
    """Whether a file launches kernels itself, or has a `main`."""
    code = [token.text for token in text if token.is_code]
    return any(
        (code[i] == "main" and code[i + 1 : i + 2] == ["("]) or code[i : i + 3] == ["<", "<", "<"]
        for i in range(len(code))
    )


def without_host_code(text: list[Token], known: frozenset[str]) -> list[Token]:
    """The tokens of the device half; `known` are the headers that kernels may include.

    >>> from tinygraph.cuda.reading.tokens import tokens
    >>> text = "__global__ void k() {} int main() { k<<<1, 1>>>(); }"
    >>> "".join(t.text for t in without_host_code(list(tokens(text)), frozenset()))
    '__global__ void k() {}'
    """
    marks = _DEVICE | _macros_with(text, _DEVICE)
    out: list[Token] = []
    for part in _declarations(text):
        if part[0].kind == "directive":
            gone = _is_foreign(part[0].text, known)
        else:
            gone = _is_of_the_host({t.text for t in part if t.is_code}, part, marks)
        out += _blank(part) if gone else part
    return out


def _macros_with(text: list[Token], words: set[str]) -> set[str]:
    """Macros that stand for one of these words: `#define HD __host__ __device__`."""
    found = set()
    for token in text:
        match = _MACRO.match(token.text) if token.kind == "directive" else None
        if match and words & set(_WORD.findall(token.text)):
            found.add(match[1])
    return found


def _declarations(text: list[Token]) -> Iterator[list[Token]]:
    """The text in parts: directives, declarations, braces of namespaces."""
    part: list[Token] = []
    depth = 0
    for token in text:
        if token.kind == "directive" and depth == 0 and not any(t.is_code for t in part):
            if part:
                yield part
            yield [token]
            part = []
            continue
        part.append(token)
        if token.kind != "mark" or token.text not in "{};":
            continue
        depth -= token.text == "}" and depth > 0
        if depth == 0 and _ends(token.text, [t.text for t in part if t.is_code]):
            yield part
            part = []
        else:
            depth += token.text == "{"
    if part:
        yield part


def _ends(mark: str, words: list[str]) -> bool:
    """Whether a declaration ends with this mark: a namespace is read as what it holds."""
    if mark == "{":
        return "namespace" in words or (words[0] == "extern" and len(words) == 3)
    return mark == ";" or len(words) == 1 or _is_function(words)


def _is_function(words: list[str]) -> bool:
    """Whether a declaration that has reached a closing brace is the body of a function."""
    head = words[: words.index("{")] if "{" in words else []
    return "(" in head and "=" not in head


def _is_of_the_host(words: set[str], part: list[Token], marks: set[str]) -> bool:
    if words & marks or not words - {"{", "}", ";"}:
        return False
    code = [token.text for token in part if token.is_code]
    if "namespace" in words and "using" not in words and code[-1] == "{":
        return False
    speaks = "std" in words or any(_RUNTIME.fullmatch(word) for word in words)
    return speaks or (code[-1] == "}" and _is_function(code))


def _is_foreign(directive: str, known: frozenset[str]) -> bool:
    """Whether a directive includes what a kernel cannot have."""
    match = _INCLUDE.match(directive)
    if match is None:
        return False
    return match[2] not in known and not match[2].startswith("cooperative_groups/")


def _blank(part: list[Token]) -> list[Token]:
    """Only the line breaks of what goes."""
    breaks = "".join(token.text for token in part).count("\n")
    return [Token("space", "\n" * breaks)] if breaks else []
