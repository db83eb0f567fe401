"""CUDA text as tokens: whatever reads a `.cu` file, reads it through here.

A directive (`#define ...`) is one token with its continued lines; comments, strings and blank space
are tokens as well, so that the tokens of a text, joined, are the text.

Source: ISO C++17, [lex.phases], [lex.pptoken].
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<directive>^[ \t]*\#(?://(?:\\.|[^\n\\])*|/\*.*?(?:\*/|\Z)|\\\n|[^\n])*)
      | (?P<comment>//(?:\\.|[^\n\\])*|/\*.*?(?:\*/|\Z))
      | (?P<space>[ \t\r]+|\n+|\\\n)
      | (?P<text>(?:R"\(.*?\)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'))
      | (?P<word>[A-Za-z_]\w*)
      | (?P<number>\.?\d(?:[eEpP][+-]|[\w.'])*)
      | (?P<mark>::|.)""",
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_MARKER = re.compile(r"\s*(?:///?|/\*+|\*(?!/))?\s*")  # what a line of a comment opens with
_WORDLIKE = re.compile(r"\w")
_PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}


class Token(NamedTuple):
    """A piece of text; `kind` is a group of the expression above."""

    kind: str
    text: str

    @property
    def is_code(self) -> bool:
        return self.kind not in ("comment", "space")


def tokens(text: str) -> Iterator[Token]:
    """All tokens of a text, in order."""
    for match in _TOKEN.finditer(text):
        yield Token(match.lastgroup or "mark", match.group())


def code(text: str) -> list[str]:
    """The tokens of a text that a compiler reads: without blank space and comments.

    >>> code("const float4* x, N - 1  // the last")
    ['const', 'float4', '*', 'x', ',', 'N', '-', '1']
    """
    return [token.text for token in tokens(text) if token.is_code]


def joined(parts: Iterable[str]) -> str:
    """Tokens as text, with blanks only where two words would run together.

    >>> joined(["unsigned", "char", "*", "x", "[", "2", "]"])
    'unsigned char*x[2]'
    """
    text = ""
    for part in parts:
        apart = text and _WORDLIKE.match(text[-1]) and _WORDLIKE.match(part)
        text += f" {part}" if apart else part
    return text


def without_comments(text: str) -> str:
    """The text with each comment as one space, its line breaks kept."""
    parts = []
    for token in tokens(text):
        found = token.text
        if token.kind == "comment":
            found = " " + "\n" * found.count("\n")
        elif token.kind == "directive":
            start = found.index("#") + 1
            found = found[:start] + without_comments(found[start:])
        parts.append(found)
    return "".join(parts)


def closing(parts: Sequence[str], at: int) -> int:
    """The place of the bracket that closes the one at `at`; the last place if none does."""
    opening, wanted, depth = parts[at], _PAIRS[parts[at]], 0
    for place in range(at, len(parts)):
        depth += (parts[place] == opening) - (parts[place] == wanted)
        if depth == 0:
            return place
    return len(parts) - 1


def split(parts: Sequence[str]) -> list[list[str]]:
    """Tokens, or characters, parted at the commas that stand in no bracket.

    >>> split(["pair", "<", "A", ",", "B", ">", "x", ",", "n"])
    [['pair', '<', 'A', ',', 'B', '>', 'x'], ['n']]
    """
    found: list[list[str]] = [[]]
    depth = 0
    for part in parts:
        depth += (part in "([{<") - (part in ")]}>")
        if part == "," and depth == 0:
            found.append([])
        else:
            found[-1].append(part)
    return found if found != [[]] else []


def split_text(text: str) -> list[str]:
    """Parts of a text between the commas that stand in no bracket.

    >>> split_text("gemm<float, true>, im2col<float>")
    ['gemm<float, true>', 'im2col<float>']
    """
    parts = ("".join(part).strip() for part in split(text))
    return [part for part in parts if part]


def stated(
    text: str, opening: re.Pattern[str], goes_on: Callable[[str], bool]
) -> Iterator[tuple[int, re.Match[str], str]]:
    """What comments state: line number, match of `opening`, and the text behind it.

    A statement takes in the next line of the comment while `goes_on` says so of its text.

    >>> text = "// sizes: 3,\\n//    4"
    >>> [found for *_, found in stated(text, re.compile("sizes:"), lambda t: t[-1] == ",")]
    ['3, 4']
    """
    lines = dict(_comment_lines(text))
    for number, line in lines.items():
        match = opening.match(line)
        if not match:
            continue
        found, at = line[match.end() :].strip(), number + 1
        while goes_on(found) and lines.get(at):
            found, at = f"{found} {lines[at]}".strip(), at + 1
        yield number, match, found


def _comment_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines of all comments, without their marks, by number."""
    number = 1
    for token in tokens(text):
        if token.kind == "comment":
            for offset, line in enumerate(token.text.split("\n")):
                line = line.strip().removesuffix("*/")
                yield number + offset, line[_MARKER.match(line).end() :].strip()  # type: ignore[union-attr]
        number += token.text.count("\n")
