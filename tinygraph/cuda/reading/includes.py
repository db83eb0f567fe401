"""A source with its local include files in the places of their lines."""

from __future__ import annotations

import re
from pathlib import Path

from tinygraph.base.text_file import is_plain, source_text
from tinygraph.cuda.reading.tokens import Token, tokens

_INCLUDE = re.compile(r'[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"')
_CONDITION = re.compile(r"[ \t]*#[ \t]*(if|ifdef|ifndef|elif|elifdef|elifndef|else|endif)\b")
_PRAGMA_ONCE = re.compile(r"[ \t]*#[ \t]*pragma[ \t]+once\b")


class Includes:
    """Puts include files in the place of their lines."""

    def __init__(self, *folders: Path) -> None:
        self.folders = folders  # where files are looked for, after the folder of the one that asks
        self.tokens: list[Token] = []
        self.texts: dict[Path, str] = {}
        self.decoded: dict[str, str] = {}  # by the name in #include: the files are not UTF-8
        self.once: set[Path] = set()  # files with #pragma once
        self.inside: list[Path] = []  # the files that are being read
        self.circle = ""

    def read(self, text: str, folder: Path, name: str, path: Path | None = None) -> None:
        """Append one file.

        An include file in an `#if` is left out with its `#line` where the condition does not hold:
        so the end of the `#if` says once more which line it is.
        """
        self._says(1, name)
        line = 1
        depth, conditional = 0, False  # of #if; whether there was an include file in one of them
        for token in tokens(text):
            directive = token.kind == "directive"
            include = _INCLUDE.match(token.text) if directive else None
            found = self._find(include[1], folder) if include else None
            if found:
                self._include(found, include[1] if include else "", name, line)
                conditional = depth > 0
            elif directive and _PRAGMA_ONCE.match(token.text):
                self.once |= {path} if path else set()
            else:
                self.tokens.append(token)
            condition = _CONDITION.match(token.text) if directive else None
            if condition:
                depth += {"if": 1, "en": -1}.get(condition[1][:2], 0)
                if conditional and condition[1][:2] != "if":
                    self.tokens.append(Token("space", "\n"))
                    self._says(line + token.text.count("\n"), name)
                conditional = conditional and depth > 0
            line += token.text.count("\n")
        self.tokens.append(Token("space", "\n"))

    def _says(self, line: int, name: str) -> None:
        self.tokens += [Token("directive", f'#line {line} "{name}"'), Token("space", "\n")]

    def _include(self, path: Path, spelled: str, name: str, line: int) -> None:
        if path not in self.texts:
            self.texts[path] = source_text(path)
        if not is_plain(path, self.texts[path]):
            self.decoded[spelled] = self.texts[path]
        if path in self.once:
            return
        if path in self.inside:
            self.circle = f"{name}:{line}: #include: {path.name} includes itself"
            return
        self.inside.append(path)
        self.read(self.texts[path], path.parent, str(path), path)
        self.inside.pop()
        self._says(line, name)

    def _find(self, spelled: str, folder: Path) -> Path | None:
        """The file that `#include "spelled"` means."""
        for place in (folder, *self.folders):
            path = place / spelled
            if path.is_file():
                return path.resolve()
        return None
