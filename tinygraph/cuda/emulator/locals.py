"""Whether a source declares a local variable without a value: then values are worth following."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tinygraph.cuda.reading.tokens import Token

_NO_TYPE = {
    *("return", "break", "continue", "goto", "else", "using", "typedef", "delete", "throw"),
    *("template", "typename", "extern", "static", "__shared__", "__constant__", "namespace"),
    *("struct", "class", "union", "enum", "do", "asm", "static_assert", "friend", "__syncthreads"),
}
_DECLARATION = re.compile(r"(?P<type>\w+)(?: (?:::|\w+|\*|&|<.*>))*?(?P<name> \w+)(?: \[.*\])*")
_DECLARATOR = re.compile(r"(?:[*&] )*\w+(?: \[.*\])*")


def declares_without_value(tokens: Iterable[Token]) -> bool:
    """Whether a function of a source declares a local variable that it gives no value.

    It may say so where there is none, as of `a * b;`, but not the other way round, macros aside.

    >>> from tinygraph.cuda.reading.source import Source
    >>> def told(body): return declares_without_value(Source(f"void f() {{ {body} }}").tokens)
    >>> told("float sum;"), told("int i = 0, *j;"), told("float a[4][N * 2];"), told("A<B> v;")
    (True, True, True, True)
    >>> told("float sum = 0, a[2] = {1, 2};"), told("sum += 1; return sum;"), told("f(a, b);")
    (False, False, False)
    >>> told("struct Pair { int a, b; };")
    False
    """
    statement: list[str] = []
    in_function = [False]
    for token in tokens:
        text = token.text
        if not token.is_code or token.kind == "directive":
            continue
        if text == "{" and _ends_a_header(statement):
            of_a_type = "(" not in statement and bool(_TYPES & set(statement))
            in_function.append(not of_a_type and (in_function[-1] or "(" in statement))
            statement = []
        elif text == "}" and "{" not in statement:
            if len(in_function) > 1:
                in_function.pop()
            statement = []
        elif text == ";":
            if in_function[-1] and _leaves_one_open(statement):
                return True
            statement = []
        elif text == ":" and (statement[:1] == ["case"] or len(statement) == 1):
            statement = []  # a label
        else:
            statement.append(text)
    return False


_TYPES = {"struct", "class", "union", "enum", "namespace"}


def _ends_a_header(statement: list[str]) -> bool:
    """Whether a brace after these words opens a block; not the values of an array."""
    return "=" not in statement and "{" not in statement


def _leaves_one_open(statement: list[str]) -> bool:
    """Whether a statement is `TYPE a = 1, b;` with a name that has no value."""
    first, *more = _at_commas([word for word in statement if word not in ("const", "volatile")])
    match = _DECLARATION.match(first)
    if not match or match["type"] in _NO_TYPE:
        return False
    if match.end() == len(first):
        return True
    if first[match.end() :][:2] not in (" =", " {", " ("):
        return False
    return any(_DECLARATOR.fullmatch(part) for part in more)


def _at_commas(words: list[str]) -> list[str]:
    """The parts of a statement between the commas that stand in no bracket."""
    parts: list[list[str]] = [[]]
    depth = 0
    for word in words:
        depth += (word in "([{<") - (word in ")]}>")
        if word == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(word)
    return [" ".join(part) for part in parts]
