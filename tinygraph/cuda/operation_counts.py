"""How many floating-point operations a launch does, as the kernel's file states it.

A file says so in its header comment, one line for each kernel, in Python's signs:

    // operations of matmul: 2 * M * N * K * outer * inner * sums
    // operations of adam_update: 12 * n if weight_decay == 0 else 14 * n

A name is a number that the kernel takes, a macro, or an array, which stands for how many elements
it has.  Counted is the mathematics: additions, subtractions, multiplications, divisions and square
roots of T are 1 each, a call of exp, log, tanh, ... is 1, a fused multiply-add is 2; comparisons,
maxima, signs and integers are none.  What a thread does beyond an edge is not counted.  The
emulator counts what is executed, and the tests compare the two.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from tinygraph.cuda.source import Source
from tinygraph.errors import ArgumentError, explain

_STATEMENT = re.compile(r"^\s*(?:///?|/\*+|\*)?\s*operations of (\w+):(.*)$", re.MULTILINE)

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min, "max": max, "ceil_div": lambda a, b: -(-a // b), "len": len,
}  # fmt: skip
_ALLOWED = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Compare, ast.BoolOp, ast.Constant,
    ast.Name, ast.Call, ast.Load, ast.operator, ast.unaryop, ast.cmpop, ast.boolop,
)  # fmt: skip


def operation_count(source: Source, function: str, numbers: Mapping[str, Any]) -> int | None:
    """The operations of one launch, or None where the file states none for the kernel.

    Parameters
    ----------
    source : Source
    function : str
        The kernel, without template arguments.
    numbers : mapping of name to number
        The launch's scalars and array sizes by parameter name.

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
    formula = statements(source).get(function)
    if formula is None:
        return None
    macros = {name: _number(value) for name, value in source.defines}
    try:
        return int(eval(_code(formula), {"__builtins__": {}}, {**_FUNCTIONS, **macros, **numbers}))
    except (NameError, TypeError, ZeroDivisionError) as error:
        known = ", ".join([*numbers, *macros])
        raise _unreadable(source, function, f"the names {known}", f"{formula!r}: {error}") from None
    except (SyntaxError, ValueError) as error:
        raise _unreadable(source, function, "an expression", f"{formula!r}: {error}") from None


@lru_cache(maxsize=1024)
def statements(source: Source) -> dict[str, str]:
    """The formula of each kernel of a file.

    >>> statements(Source.read("// operations of scale: n\\n__global__ void scale(int n) {}"))
    {'scale': 'n'}
    """
    return {name: formula.strip() for name, formula in _STATEMENT.findall(source.text)}


@lru_cache(maxsize=1024)
def _code(formula: str) -> Any:
    """The formula compiled; ValueError for anything but arithmetic."""
    tree = ast.parse(formula, mode="eval")
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED):
            raise ValueError(f"{type(node).__name__} is no arithmetic")
    return compile(tree, "<operations>", "eval")


def _number(text: str) -> Any:
    try:
        return int(text, 0)
    except ValueError:
        return text


def _unreadable(source: Source, function: str, expected: str, got: str) -> ArgumentError:
    return ArgumentError(
        explain(source.name, f"operations of {function}", expected, got,
                "// operations of NAME: 2 * M * N * K, with numbers that the kernel takes")
    )  # fmt: skip
