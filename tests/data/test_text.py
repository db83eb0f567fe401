"""Texts: the one of the package, files of one's own, codes, windows."""

import gzip
import hashlib

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base.errors import ArgumentError, DatasetError, ShapeError
from tinygraph.data import TextWindows, read_text, text
from tinygraph.data.text import encode

WORDS = "to be, or not to be"


def test_the_text_of_the_package():
    found = read_text("shakespeare")
    assert hashlib.sha256(found.encode()).hexdigest() == text.PUBLISHED.sha256
    assert "To be, or not to be" not in found  # Hamlet is not among the plays
    assert "Now is the winter of our discontent" in found
    assert found.count("\n") == 40000


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_of_ones_own(tmp_path, monkeypatch, pack):
    (tmp_path / "mine.txt").write_bytes(pack("\ufeffä\r\nb\rc\n".encode()))
    assert read_text(tmp_path / "mine.txt") == "ä\nb\nc\n"
    assert read_text("mine.txt", tmp_path) == "ä\nb\nc\n"
    monkeypatch.setenv("TINYGRAPH_DATA", str(tmp_path))
    assert read_text("mine.txt") == "ä\nb\nc\n"


@pytest.mark.parametrize(
    "content, words",
    [
        (None, r"absent\.txt: expected the file, got nothing of that name.*there is shakespeare"),
        (b"ab\xff", r"expected UTF-8, got byte 0xff at 2. Way out: save it in UTF-8"),
        (b"\x1f\x8bab", "expected an intact gzip file"),
    ],
)
def test_files_that_are_no_texts(tmp_path, content, words):
    path = tmp_path / "absent.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DatasetError, match=words):
        read_text(path)


def test_a_text_that_is_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "_MAX_BYTES", 5)
    (tmp_path / "mine.txt").write_text("123456")
    with pytest.raises(DatasetError, match="at most 5 bytes, got more"):
        read_text(tmp_path / "mine.txt")


def test_the_text_of_the_package_is_verified(tmp_path, monkeypatch):
    (tmp_path / "other.gz").write_bytes(gzip.compress(b"another text"))
    monkeypatch.setitem(text.TEXTS, "shakespeare", tmp_path / "other.gz")
    with pytest.raises(DatasetError, match="1115394 bytes of text"):
        read_text("shakespeare")


def test_codes_are_places_in_the_alphabet():
    alphabet = "".join(sorted(set(WORDS)))
    assert "".join(alphabet[code] for code in encode(WORDS, alphabet)) == WORDS
    with pytest.raises(ArgumentError, match="got 'T' at place 3. Way out: write 't'"):
        encode("or Tot", alphabet)
    with pytest.raises(ArgumentError, match="got '7' at place 0. Way out: leave it out"):
        encode("7", alphabet)


@pytest.mark.parametrize("length, stride", [(1, 1), (4, 1), (4, 4), (7, 3), (18, 5)])
def test_windows_by_slices(length, stride):
    codes = np.frombuffer(WORDS.encode(), np.uint8)
    windows = TextWindows(codes, length, stride)
    starts = [i for i in range(0, len(WORDS), stride) if i + length + 1 <= len(WORDS)]
    assert len(windows) == len(starts)
    for k, i in enumerate(starts):
        inputs, labels = windows[k]
        assert bytes(inputs).decode() == WORDS[i : i + length]
        assert bytes(labels).decode() == WORDS[i + 1 : i + length + 1]
    inputs, labels = windows[np.array([len(windows) - 1, 0])]
    assert inputs.shape == labels.shape == (2, length)
    assert bytes(inputs[1]).decode() == WORDS[:length]
    assert windows[:1][0].shape == (1, length)


@pytest.mark.parametrize("codes, got", [(range(4), r"\(4,\)"), ([[1, 2]], r"\(1, 2\)")])
def test_a_text_that_is_too_short(codes, got):
    with pytest.raises(ShapeError, match=rf"expected \(5,\) or longer.*got {got}"):
        tg.data.TextWindows(list(codes), 4)
