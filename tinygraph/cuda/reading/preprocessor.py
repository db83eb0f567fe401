"""The tokens of a CUDA source after a small C preprocessor: what `signature` reads.

Comments go, `#if` is decided, and macros without parameters are replaced.  Function-like macros
stay as they stand: a kernel that one of them writes is not seen, its parameters are given by hand.

Source: ISO C++17, [cpp].
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from tinygraph.cuda.reading.source import Source
from tinygraph.cuda.reading.tokens import Token, code, joined, without_comments

# What both compilers of kernels define (the emulator's header, NVRTC).
PREDEFINED = {
    "__CUDACC__": "1",
    "__CUDACC_RTC__": "1",
    "__CUDA_ARCH__": "900",
    "__cplusplus": "201703L",
}

_DIRECTIVE = re.compile(r"\s*#\s*(\w+)\s*(.*?)\s*", re.DOTALL)
_DEFINE = re.compile(r"([A-Za-z_]\w*)(\()?(.*)")
_DEFINED = re.compile(r"\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))")
_HAS_FEATURE = re.compile(r"\b__has_\w+\s*\([^()]*\)")
_NUMBER = re.compile(r"\b(0[xX][\da-fA-F]+|\d+)[uUlL]*\b")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


@lru_cache(maxsize=64)
def preprocess(source: Source) -> tuple[str, ...]:
    """The tokens of a source: identifiers, numbers, strings, `::`, and single signs.

    >>> preprocess(Source.read("#define REAL float // a type\\n__global__ void k(REAL *x) {}"))
    ('__global__', 'void', 'k', '(', 'float', '*', 'x', ')', '{', '}')
    """
    reader = _Reader(source.defines)
    for token in source.tokens:
        reader.read(token)
    return tuple(reader.tokens)


class _Reader:
    """Reads tokens with the macros that are defined so far."""

    def __init__(self, defines: tuple[tuple[str, str], ...]) -> None:
        self.macros = {name: code(text) for name, text in [*PREDEFINED.items(), *defines]}
        self.tokens: list[str] = []
        # One entry for each open #if: whether its branch is read, and whether one has been taken.
        self.branches: list[tuple[bool, bool]] = []

    def read(self, token: Token) -> None:
        """Append a token, or do what a directive says."""
        reading = all(active for active, _ in self.branches)
        if token.kind == "directive":
            text = without_comments(token.text).replace("\\\n", " ")
            match = _DIRECTIVE.fullmatch(text)
            word, rest = match.groups() if match else ("", "")
            if word in ("if", "ifdef", "ifndef", "elif", "else", "endif"):
                self._branch(word, rest)
            elif reading:
                self._obey(word, rest)
        elif reading and token.is_code:
            self._expand([token.text], self.tokens, frozenset())

    def _branch(self, word: str, rest: str) -> None:
        branches = self.branches
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

        >>> _Reader((("TILE", "16"),))._condition("if", "defined(TILE) && !NONE")
        True
        """
        if word != "if":
            name = _IDENTIFIER.match(rest)
            return (name is not None and name.group() in self.macros) == (word == "ifdef")

        def defined(match: re.Match[str]) -> str:
            return "1" if (match[1] or match[2]) in self.macros else "0"

        expanded: list[str] = []
        text = _HAS_FEATURE.sub("0", _DEFINED.sub(defined, rest))
        self._expand(code(text), expanded, frozenset())
        return bool(evaluate(expanded, {"true": 1}, unknown=0))

    def _obey(self, word: str, rest: str) -> None:
        """A directive other than a condition."""
        macro = _DEFINE.match(rest) if word == "define" else None
        if macro and not macro[2]:
            self.macros[macro[1]] = code(macro[3])
        elif word == "undef":
            self.macros.pop(rest, None)

    def _expand(self, found: list[str], out: list[str], inside: frozenset[str]) -> None:
        """Append tokens, each macro replaced; a macro within itself stays, as in C."""
        for token in found:
            if token in self.macros and token not in inside:
                self._expand(self.macros[token], out, inside | {token})
            else:
                out.append(token)


_PYTHON = {"&&": " and ", "||": " or ", "!": " not ", "/": "//"}
_ARITHMETIC = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Compare, ast.BoolOp, ast.Call),
    *(ast.Constant, ast.Name, ast.Load, ast.operator, ast.unaryop, ast.cmpop, ast.boolop),
)


@lru_cache(maxsize=1024)
def arithmetic(expression: str, in_c: bool = False) -> Any:
    """An expression in Python's signs, compiled; ValueError or SyntaxError if it is no arithmetic.

    With `in_c`, `and` and `or` are true or false, and what C does not know or means otherwise is
    refused: powers and chains of comparisons.
    """
    tree = ast.parse(expression, mode="eval")
    for node in ast.walk(tree):
        chain = len(getattr(node, "ops", ())) > 1
        if not isinstance(node, _ARITHMETIC) or (in_c and (chain or isinstance(node, ast.Pow))):
            raise ValueError(f"{type(node).__name__} is no arithmetic")
        if in_c and isinstance(node, ast.BoolOp):
            truths = [ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), x)) for x in node.values]
            node.values = list(truths)
    return compile(ast.fix_missing_locations(tree), "<arithmetic>", "eval")


def evaluate(
    expression: list[str], names: Mapping[str, int], unknown: int | None = None
) -> int | None:
    """An integer constant expression in C; None if it is none, or has a name that is not known.

    Parameters
    ----------
    expression : list of str
        Its tokens.
    names : mapping
        The names that have a value.
    unknown : int or None
        The value of other names; 0 in `#if`.

    >>> evaluate(code("32 * WARPS - 1"), {"WARPS": 8})
    255
    """
    text = re.sub(r"&&|\|\||!(?!=)|/", lambda m: _PYTHON[m.group()], joined(expression))
    text = _NUMBER.sub(lambda m: str(int(m[1], 16 if m[1][:2] in ("0x", "0X") else 10)), text)
    known = dict(names) if unknown is None else defaultdict(lambda: unknown, names)
    try:
        value = eval(arithmetic(text.strip(), in_c=True), {"__builtins__": {}}, known)
    except (SyntaxError, ValueError, NameError, ArithmeticError, TypeError, RecursionError):
        return None
    return int(value) if isinstance(value, int) else None
