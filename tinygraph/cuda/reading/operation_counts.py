"""How many floating-point operations a launch does, as the kernel's file states it.

A file says so in its header comment, one statement for each kernel, in Python's signs:

    // operations of matmul: 2 * M * N * K * outer * inner * sums
    // operations of adam_update: (14 if weight_decay else 12) * n
    // operations of unary_forward<T, Exp|Log|Sqrt>: n
    // operations of unary_forward: 0

A name is a number that the kernel takes, a macro, or an array, which stands for how many elements
it has, none where it is null; n stands for the sum of n_0, n_1, ... where there are such.  Template
arguments may stand behind the kernel's name, T for any type; the first statement that fits holds.
A formula may begin in the next line, and goes on while a bracket is open.  Work that depends on
values is stated as the most that it can be, and a word behind # says when it is less.

Counted is the mathematics: additions, subtractions, multiplications, divisions and square roots of
T are 1 each, a call of exp, log, tanh, ... is 1, a fused multiply-add is 2.  A sum of n terms is n,
for it begins with 0.  Comparisons, maxima, absolute values, signs, conversions and integers are
none, and so are all instances of a kernel for integers.  What a thread does beyond an edge, or to
share a sum with its group, is not counted.  The emulator counts what is executed, and the tests
compare the two.

Where tiles reach far beyond an edge, as those of a product with 10 columns, a file may state what
threads execute as well, in the same way:

    // issued operations of matmul: 2 * ceil_div(M, 64) * 64 * ceil_div(N, 64) * 64 * K
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from tinygraph.base import ArgumentError
from tinygraph.cuda.reading.preprocessor import arithmetic
from tinygraph.cuda.reading.signature import split_name
from tinygraph.cuda.reading.source import Source
from tinygraph.cuda.reading.tokens import split_text, stated

_WORDS = r"operations of (?P<kernel>\w+)(?:<(?P<types>.*)>)?\s*:"
_STATEMENT = re.compile(_WORDS)
_ISSUED = re.compile("issued " + _WORDS)
_INTEGER = re.compile(r"bool|((un)?signed )?(char|short|int|long|long long)|(un)?signed|size_t")

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "ceil_div": lambda a, b: -(-a // b),
    "len": len,
}


def operation_count(
    source: Source, kernel: str, numbers: Mapping[str, Any], issued: bool = False
) -> int | None:
    """The operations of one launch, or None where the file states none for the kernel.

    Parameters
    ----------
    source : Source
    kernel : str
        With its template arguments, if it has any.
    numbers : mapping of name to number
        The launch's scalars and array sizes by parameter name.
    issued : bool
        What threads execute, beyond edges too, where the file states it.

    Raises
    ------
    ArgumentError
        For a statement that cannot be read, or that uses a name which the kernel does not have.

    Examples
    --------
    >>> source = Source.read("// operations of scale: 2 * n\\n__global__ void scale(int n) {}")
    >>> operation_count(source, "scale", {"n": 100})
    200
    """
    function, types = split_name(kernel)
    formula = _formula(source, function, types, issued)
    if formula is None:
        return operation_count(source, kernel, numbers) if issued else None
    if _is_integer(types):
        return 0
    macros = {name: _number(value) for name, value in source.defines}
    known = {**_FUNCTIONS, **_sums(numbers), **macros, **numbers}
    try:
        return int(eval(arithmetic(formula), {"__builtins__": {}}, known))
    except (NameError, TypeError, ZeroDivisionError) as error:
        names = f"the names {', '.join([*numbers, *macros])}"
        raise _unreadable(source, function, names, f"{formula!r}: {error}") from None
    except (SyntaxError, ValueError) as error:
        raise _unreadable(source, function, "an expression", f"{formula!r}: {error}") from None


def _sums(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """For names that are counted, x_0, x_1, ..., their sum as x.

    >>> _sums({"n_0": 2, "n_1": 3, "m": 7})
    {'n': 5}
    """
    sums: dict[str, Any] = {}
    for name, number in numbers.items():
        family, _, index = name.rpartition("_")
        if index.isdigit() and f"{family}_0" in numbers:
            sums[family] = sums.get(family, 0) + number
    return sums


class Statement(NamedTuple):
    """What a file states: the kernel, the template arguments that it holds for, and the formula."""

    kernel: str
    types: tuple[str, ...]
    formula: str


@lru_cache(maxsize=1024)
def statements(source: Source, issued: bool = False) -> tuple[Statement, ...]:
    """The statements of a file, in their order; those of issued operations for `issued`.

    >>> statements(Source.read("// operations of scale: n\\n__global__ void scale(int n) {}"))
    (Statement(kernel='scale', types=(), formula='n'),)
    """
    return tuple(
        Statement(match["kernel"], tuple(split_text(match["types"] or "")), formula)
        for _, match, formula in stated(source.text, _ISSUED if issued else _STATEMENT, _is_open)
    )


def _is_open(formula: str) -> bool:
    """Whether a formula goes on in the next line: it has not begun, or a bracket is open."""
    return not formula or formula.count("(") > formula.count(")")


def _formula(source: Source, function: str, types: tuple[str, ...], issued: bool) -> str | None:
    """The first formula that fits a kernel and its template arguments."""
    for statement in statements(source, issued):
        stated = statement.types
        if statement.kernel != function or len(stated) > len(types):
            continue
        if all(map(fits, stated, types)):
            return statement.formula
    return None


def fits(stated: str, given: str) -> bool:
    """Whether a template argument is what a statement names: T for any, or one out of several."""
    return stated == "T" or given in [choice.strip() for choice in stated.split("|")]


def _is_integer(types: tuple[str, ...]) -> bool:
    """Whether a kernel is an instance for integers, and for no float."""
    kinds = [kind.removeprefix("const ") for kind in types]
    return any(map(_INTEGER.fullmatch, kinds)) and not {"float", "double"} & set(kinds)


def _number(text: str) -> Any:
    try:
        return int(text, 0)
    except ValueError:
        return text


def _unreadable(source: Source, function: str, expected: str, got: str) -> ArgumentError:
    return ArgumentError(
        source.name,
        f"operations of {function}",
        expected,
        got,
        "// operations of NAME: 2 * M * N * K, with numbers that the kernel takes",
    )
