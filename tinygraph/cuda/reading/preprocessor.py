"""The tokens of a CUDA source after a small C preprocessor: what `signature` reads.

Comments go, `#if` is decided, and macros are replaced, but for those with `...`: a kernel that one
of these writes is not seen, its parameters are given by hand.

Source: ISO C++17, [cpp].
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from tinygraph.cuda.reading.source import Source
from tinygraph.cuda.reading.tokens import Token, closing, code, joined, split, without_comments

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
    return (*reader.tokens, *reader.call)


class _Macro(NamedTuple):
    """What stands for a name; `parameters` is None where it takes none, not even `()`."""

    body: list[str]
    parameters: list[str] | None = None

    def written(self, arguments: list[list[str]], expanded: list[list[str]]) -> list[str]:
        """The body with arguments in the place of parameters; `a ## b` becomes one token.

        An argument beside `##` stays as it was written, others have their macros replaced.

        >>> _Macro(code("x ## _0, x"), ["x"]).written([["N"]], [["3"]])
        ['N_0', ',', '3']
        """
        raw, full = (
            dict(zip(self.parameters or [], of, strict=False)) for of in (arguments, expanded)
        )
        words: list[str] = []
        for at, token in enumerate(self.body):
            pasted = "#" in self.body[max(at - 1, 0) : at + 2]  # `##` is two tokens
            words += (raw if pasted else full).get(token, [token])
        while "#" in words[1:-1]:
            at = words.index("#", 1)
            words[at - 1 : at + 3] = ["".join(words[at - 1 : at + 3]).replace("#", "")]
        return words


class _Reader:
    """Reads tokens with the macros that are defined so far."""

    def __init__(self, defines: tuple[tuple[str, str], ...]) -> None:
        given = [*PREDEFINED.items(), *defines]
        self.macros = {name: _Macro(code(text)) for name, text in given}
        self.tokens: list[str] = []
        self.call: list[str] = []  # of a macro with parameters, as far as it has been read
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
            self.call.append(token.text)
            if not self._call_goes_on():
                self._expand(self.call, self.tokens, frozenset())
                self.call = []

    def _call_goes_on(self) -> bool:
        macro, call = self.macros.get(self.call[0]), self.call
        if macro is None or macro.parameters is None or call[1:2] not in ([], ["("]):
            return False
        return len(call) == 1 or call.count("(") > call.count(")")

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
            self.macros[macro[1]] = _Macro(code(macro[3]))
        elif macro and "..." not in macro[3]:
            parameters, _, body = macro[3].partition(")")
            self.macros[macro[1]] = _Macro(code(body), re.findall(r"\w+", parameters))
        elif word == "undef":
            self.macros.pop(rest, None)

    def _expand(self, found: list[str], out: list[str], inside: frozenset[str]) -> list[str]:
        """Append tokens, each macro replaced; a macro within itself stays, as in C."""
        at = 0
        while at < len(found):
            token = found[at]
            macro = self.macros.get(token) if token not in inside else None
            arguments: list[list[str]] = []
            if macro and macro.parameters is not None:
                if found[at + 1 : at + 2] == ["("]:
                    last = closing(found, at + 1)
                    arguments, at = split(found[at + 2 : last]), last
                else:
                    macro = None  # a call has parentheses
            if macro:
                expanded = [self._expand(argument, [], inside) for argument in arguments]
                self._expand(macro.written(arguments, expanded), out, inside | {token})
            else:
                out.append(token)
            at += 1
        return out


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
