"""Text files that people wrote, on whatever system: their byte order marks and encodings.

    read_text     UTF-8, or UTF-16 and UTF-32 with their byte order mark; ValueError for others
    python_text   the same, and what a line `# coding: ...` of a Python file says
    source_text   the same, and Latin-1 with a warning: sources of kernels, whose comments are old

None of them leaves a byte order mark in the text; each line ends in \\n.
"""

from __future__ import annotations

import codecs
import io
import re
import tokenize
import warnings
from pathlib import Path

from tinygraph.base.disk import open_regular

_MARKS = (  # that of UTF-16 is the beginning of that of UTF-32
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SECOND_BYTE = re.compile(rb"(//[^\n]*[\x81-\x9f\xe0-\xfc])\\(?=\r?\n)")


def read_text(path: Path) -> str:
    """The text of a file; OSError, and ValueError with the line that is not UTF-8."""
    return text_of(_bytes(path))


def python_text(path: Path) -> str:
    """The text of a Python file; OSError, ValueError."""
    data = _bytes(path)
    if not data.startswith(tuple(mark for mark, _ in _MARKS)):
        try:
            said, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            if said != "utf-8":
                return _lines(data.decode(said))
        except (SyntaxError, UnicodeDecodeError):
            pass  # another encoding than it says, or none that is known
    return text_of(data)


def source_text(path: Path, warn: bool = True) -> str:
    """The text of a source of kernels; OSError, and ValueError of what is no text at all.

    What is not UTF-8 is read as Latin-1, in the form that Windows has, a character for each byte.
    Of Shift-JIS comments are noise then, and the backslash that is the second byte of a character
    does not join the next line to them.
    """
    data = _bytes(path)
    try:
        return text_of(data)
    except UnicodeDecodeError as error:
        if data.startswith(tuple(mark for mark, _ in _MARKS)) or b"\0" in data:
            raise
        if warn:
            line = data.count(b"\n", 0, error.start) + 1
            warnings.warn(
                f"{path}:{line}: byte {data[error.start]:#04x} is not UTF-8; the file is read as "
                "Latin-1 (Windows-1252). Save it in UTF-8 if that is not what it is",
                stacklevel=3,
            )
    return _lines(_SECOND_BYTE.sub(rb"\1?", data).decode("cp1252", "replace"))


def is_plain(path: Path, text: str) -> bool:
    """Whether a file holds its text in UTF-8, without a mark, as any compiler reads it."""
    return _lines(path.read_bytes().decode("latin-1")).encode("latin-1") == text.encode()


def _bytes(path: Path) -> bytes:
    """What a file holds; OSError for a pipe, at which one could wait for ever."""
    with open_regular(path) as file:
        return file.read()


def text_of(data: bytes) -> str:
    """The text of these bytes, as `read_text` has it."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _lines(data.removeprefix(codecs.BOM_UTF8).decode(encoding))
    if b"\0" in data:
        raise ValueError("zero bytes in it: no text, or UTF-16 without a byte order mark")
    try:
        return _lines(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        error.reason = f"{error.reason}, line {line} is not UTF-8: save the file in UTF-8"
        raise


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
