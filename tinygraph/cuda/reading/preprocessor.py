"""The tokens of a CUDA source after a small C preprocessor: what `signature` reads.

Comments go, local include files are read in their place, `#if` is decided, and macros without
parameters are replaced.  Function-like macros stay as they stand: a kernel that one of them writes
is not seen, and its parameters are declared by hand.

Source: ISO C++17, [cpp].
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from tinygraph.cuda.reading.source import Source, find_include

# What both compilers of kernels define (the emulator's header, NVRTC).
PREDEFINED = {
    "__CUDACC__": "1",
    "__CUDACC_RTC__": "1",
    "__CUDA_ARCH__": "900",
    "__cplusplus": "201703L",
}

_COMMENT_OR_STRING = re.compile(
    r"""//(?:[^\n\\]|\\.|\\\n)*|/\*.*?(?:\*/|\Z)|R"\((?:.*?)\)"|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+'""",
    re.DOTALL,
)
_TOKEN = re.compile(
    r"""R"\(.*?\)"|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+'|[A-Za-z_]\w*"""
    r"""|\.?\d(?:[eEpP][+-]|[\w.']|\.)*|::|\S""",
    re.DOTALL,
)
_DIRECTIVE = re.compile(r"\s*#\s*(\w+)?\s*(.*)")
_DEFINE = re.compile(r"([A-Za-z_]\w*)(\()?(.*)")
_DEFINED = re.compile(r"\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))")
_HAS_FEATURE = re.compile(r"\b__has_\w+\s*\([^()]*\)")
_NUMBER = re.compile(r"\b(0[xX][\da-fA-F]+|\d+)[uUlL]*\b")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_DEEPEST = 64  # of include files in each other


@lru_cache(maxsize=64)
def preprocess(source: Source) -> tuple[str, ...]:
    """The tokens of a source: identifiers, numbers, strings, `::`, and single signs.

    >>> preprocess(Source.read("#define REAL float // a type\\n__global__ void k(REAL *x) {}"))
    ('__global__', 'void', 'k', '(', 'float', '*', 'x', ')', '{', '}')
    """
    reader = _Reader(source)
    reader.read(source.text, source.folder, 0)
    return tuple(reader.tokens)


def tokenize(text: str) -> list[str]:
    """The tokens of a text without comments.

    >>> tokenize("const float4* x, N - 1")
    ['const', 'float4', '*', 'x', ',', 'N', '-', '1']
    """
    return _TOKEN.findall(text)


def without_comments(text: str) -> str:
    """The text with each comment as one space, its line breaks kept."""

    def blank(match: re.Match[str]) -> str:
        found = match.group()
        return " " + "\n" * found.count("\n") if found.startswith(("//", "/*")) else found

    return _COMMENT_OR_STRING.sub(blank, text)


class _Reader:
    """Reads files line by line, with the macros that are defined so far."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.macros = {name: tokenize(text) for name, text in PREDEFINED.items()}
        self.macros |= {name: tokenize(text) for name, text in source.defines}
        self.tokens: list[str] = []
        self.once: set[Path] = set()  # files with #pragma once

    def read(self, text: str, folder: Path, depth: int, path: Path | None = None) -> None:
        """Append the tokens of one file."""
        lines = without_comments(text.replace("\\\n", " ")).split("\n")
        # One entry for each open #if: whether its branch is read, and whether one has been taken.
        branches: list[tuple[bool, bool]] = []
        for line in lines:
            directive = _DIRECTIVE.match(line)
            reading = all(active for active, _ in branches)
            if not directive:
                if reading:
                    self._expand(tokenize(line), self.tokens, frozenset())
                continue
            word, rest = directive[1] or "", directive[2]
            if word in ("if", "ifdef", "ifndef", "elif", "else", "endif"):
                self._branch(branches, word, rest)
            elif reading:
                self._obey(word, rest.strip(), folder, depth, path)

    def _branch(self, branches: list[tuple[bool, bool]], word: str, rest: str) -> None:
        outer = all(active for active, _ in branches)
        if word.startswith("if"):
            chosen = outer and self._condition(word, rest)
            branches.append((chosen, chosen or not outer))
        elif branches and word == "endif":
            branches.pop()
        elif branches:
            _, taken = branches.pop()
            chosen = not taken and (word == "else" or self._condition("if", rest))
            branches.append((chosen, taken or chosen))

    def _condition(self, word: str, rest: str) -> bool:
        """Whether `#if rest`, `#ifdef rest` or `#ifndef rest` holds; what cannot be read does not.

        >>> _Reader(Source("", None, (("TILE", "16"),)))._condition("if", "defined(TILE) && !NONE")
        True
        """
        if word != "if":
            name = _IDENTIFIER.match(rest.strip())
            return (name is not None and name.group() in self.macros) == (word == "ifdef")

        def defined(match: re.Match[str]) -> str:
            return "1" if (match[1] or match[2]) in self.macros else "0"

        expanded: list[str] = []
        text = _HAS_FEATURE.sub("0", _DEFINED.sub(defined, rest))
        self._expand(tokenize(text), expanded, frozenset())
        return bool(evaluate(expanded, {"true": 1}, unknown=0))

    def _obey(self, word: str, rest: str, folder: Path, depth: int, path: Path | None) -> None:
        """A directive other than a condition."""
        if word == "define":
            macro = _DEFINE.match(rest)
            if macro and not macro[2]:
                self.macros[macro[1]] = tokenize(macro[3])
        elif word == "undef":
            self.macros.pop(rest, None)
        elif word == "pragma" and rest == "once" and path:
            self.once.add(path)
        elif word == "include" and rest.startswith('"') and depth < _DEEPEST:
            found = find_include(rest.split('"')[1], folder, self.source.folder)
            if found and found not in self.once:
                text = found.read_text(encoding="utf-8", errors="replace")
                self.read(text, found.parent, depth + 1, found)

    def _expand(self, tokens: list[str], out: list[str], inside: frozenset[str]) -> None:
        """Append tokens, each macro replaced; a macro within itself stays, as in C."""
        for token in tokens:
            if token in self.macros and token not in inside:
                self._expand(self.macros[token], out, inside | {token})
            else:
                out.append(token)


_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
_PYTHON = {"&&": " and ", "||": " or ", "!": " not ", "true": "1", "false": "0"}


def evaluate(tokens: list[str], names: Mapping[str, int], unknown: int | None = None) -> int | None:
    """An integer constant expression in C; None if it is none, or has a name that is not known.

    Parameters
    ----------
    tokens : list of str
    names : mapping
        The names that have a value.
    unknown : int or None
        The value of other names; 0 in `#if`.

    >>> evaluate(tokenize("32 * WARPS - 1"), {"WARPS": 8})
    255
    """
    text = re.sub(r"&&|\|\||!(?!=)", lambda m: _PYTHON[m.group()], _joined(tokens))
    text = _NUMBER.sub(lambda m: str(int(m[1], 16 if m[1][:2] in ("0x", "0X") else 10)), text)
    try:
        return int(_value(ast.parse(text.strip(), mode="eval").body, names, unknown))
    except (SyntaxError, ValueError, KeyError, ArithmeticError, TypeError, RecursionError):
        return None


def _joined(tokens: list[str]) -> str:
    """Tokens as text: words apart, signs together, so that `&` `&` is `&&` again."""
    text = ""
    for token in tokens:
        apart = text and (text[-1].isalnum() or text[-1] == "_") and re.match(r"\w", token)
        text += f" {token}" if apart else token
    return text


def _value(node: ast.expr, names: Mapping[str, int], unknown: int | None) -> Any:
    """The value of a node of Python's syntax tree; KeyError for anything that is not arithmetic."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name):
        if node.id not in names and unknown is None:
            raise KeyError(node.id)
        return names.get(node.id, unknown)
    if isinstance(node, ast.UnaryOp):
        return _OPERATORS[type(node.op)](_value(node.operand, names, unknown))
    if isinstance(node, ast.BoolOp):
        values = (_value(part, names, unknown) for part in node.values)
        return all(values) if isinstance(node.op, ast.And) else any(values)
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, names, unknown), _value(node.right, names, unknown)
        return _OPERATORS[type(node.op)](left, right)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = _value(node.left, names, unknown), _value(node.comparators[0], names, unknown)
        return _OPERATORS[type(node.ops[0])](left, right)
    raise KeyError(type(node).__name__)
