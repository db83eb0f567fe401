"""Texts: one that tinygraph brings along, files of your own, and stretches of them to learn from.

    text     "To be, or not to be"           a str
    codes    [32, 53, 1, 40, 43, ...]        the place of each character in the alphabet
    window   inputs codes[i : i + T], labels codes[i + 1 : i + T + 1]

shakespeare.txt.gz has 40,000 lines of plays by William Shakespeare (1564 to 1616), which are in
the public domain, as Andrej Karpathy put them together for char-rnn ("tiny Shakespeare", 2015):
1,115,394 ASCII characters, 65 different ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tinygraph.base import AnyPath, ArgumentError, ShapeError, as_path, nearest, unmasked, whole
from tinygraph.data.dataset import BatchedDataset
from tinygraph.data.files import Published, fault, folders, missing, opened, verify
from tinygraph.engine import Array

TEXTS = {"shakespeare": Path(__file__).with_name("shakespeare.txt.gz")}
PUBLISHED = Published(1115394, "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed")

_MAX_BYTES = 1 << 28


def read_text(name: AnyPath, data_dir: AnyPath | None = None) -> str:
    """A text as one string, with \\n at the end of each line.

    Parameters
    ----------
    name : str or Path
        "shakespeare", or a file in UTF-8, plain or compressed with gzip.
    data_dir : str or Path, optional
        A folder in which a file that is not found as it is named is looked for too; by default the
        one that the environment variable TINYGRAPH_DATA names.

    Raises
    ------
    DatasetError
        There is no such file; it is not UTF-8, too large, or cannot be read.

    Examples
    --------
    >>> import tinygraph as tg
    >>> text = tg.data.read_text("shakespeare")
    >>> text[:14], len(text), len(set(text))
    ('First Citizen:', 1115394, 65)
    """
    path = TEXTS.get(name) if isinstance(name, str) else None
    path = path or _found(name, data_dir)
    with opened("read_text", path) as stream:
        content = stream.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise fault("read_text", path, f"at most {_MAX_BYTES} bytes", "more", "cut the file")
    if path in TEXTS.values():
        verify("read_text", path, PUBLISHED, content)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        got = f"byte {content[error.start]:#04x} at {error.start}"
        raise fault("read_text", path, "UTF-8", got, "save it in UTF-8") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _found(name: AnyPath, data_dir: AnyPath | None) -> Path:
    """The file of that name, here or in the folder of the data files."""
    here = as_path("read_text", "name", name)
    looked_in = [Path.cwd(), *folders(data_dir)]
    path = next((f / here for f in looked_in if (f / here).is_file()), None)
    if path is None:
        other = f"check the path; without a file there is {', '.join(TEXTS)}"
        way_out = nearest(str(here), TEXTS) or other
        raise missing("read_text", str(here), looked_in, way_out)
    return path


def encode(text: str, alphabet: str, op: str = "encode", argument: str = "text") -> Array:
    """The place of each character in the alphabet: int64 (L,).

    Raises
    ------
    ArgumentError
        A character that is not in the alphabet.

    Examples
    --------
    >>> encode("cab", "abc").tolist()
    [2, 0, 1]
    """
    places = {character: place for place, character in enumerate(alphabet)}
    for at, character in enumerate(text):
        if character not in places:
            expected = f"characters of the text that was learnt from, {alphabet!r}"
            got = f"{character!r} at place {at}"
            other = character.swapcase()
            way_out = f"write {other!r}" if other in places else "leave it out"
            raise ArgumentError(op, argument, expected, got, way_out)
    return np.array([places[character] for character in text], np.int64)


class TextWindows(BatchedDataset):
    """Stretches of a text as inputs, and the same stretches one character later as labels.

    Parameters
    ----------
    codes : array of int (L,)
        The text, as `encode` makes it.
    length : int
        T: the characters of a window.
    stride : int
        From the beginning of a window to that of the next one.

    Raises
    ------
    ShapeError
        The text is too short for a window and the character after it.

    Examples
    --------
    >>> import tinygraph as tg
    >>> windows = tg.data.TextWindows([7, 8, 9, 5, 6], length=3)
    >>> len(windows), windows[1]
    (2, (array([8, 9, 5]), array([9, 5, 6])))
    """

    def __init__(self, codes: Any, length: int, stride: int = 1) -> None:
        self.codes = np.asarray(unmasked("TextWindows", "codes", codes))
        self.length = whole("TextWindows", "length", length)
        self.stride = whole("TextWindows", "stride", stride)
        if self.codes.ndim != 1 or len(self.codes) <= self.length:
            expected = f"({self.length + 1},) or longer: a window and the character after it"
            way_out = "take a longer text, or shorter windows"
            raise ShapeError("TextWindows", "codes", expected, self.codes.shape, way_out)
        self._starts = np.arange(0, len(self.codes) - self.length, self.stride)

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, index: Any) -> tuple[Array, Array]:
        """(inputs, labels), (T,) at an int, (N, T) at a slice or an array of ints."""
        at = self._starts[index][..., None] + np.arange(self.length + 1)  # (..., T + 1)
        window = self.codes[at]
        return window[..., :-1], window[..., 1:]

    def __repr__(self) -> str:
        return f"TextWindows({len(self)} windows of {self.length} characters)"
