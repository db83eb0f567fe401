"""JSON out of files: what Python makes of it silently, or with a traceback, is a ValueError."""

import math

import pytest

from tinygraph.base.json_files import parse, read_text

BAD = {
    "deep": "[" * 100_000,
    "deep objects": '{"a":' * 100_000,
    "beyond a float": "[1e400]",
    "below a float": "-1e999",
    "5000 digits": "9" * 5000,
    "a key twice": '{"a": {"b": 1, "b": 1}}',
    "nothing": "",
    "two": "1 2",
    "no UTF-8": b'"\xff"',
}


@pytest.mark.parametrize("name", BAD)
def test_bad_texts(name):
    with pytest.raises(ValueError, match="."):
        parse(BAD[name])


def test_good_texts():
    assert parse('{"a": [1, null, 1e-400, "\\ud800"], "": {}}') == {
        "a": [1, None, 0.0, "\ud800"],
        "": {},
    }
    assert math.isnan(parse("NaN")) and parse(b"[-1.5]") == [-1.5]


def test_files(tmp_path):
    path = tmp_path / "file"
    path.write_bytes("é".encode())
    assert read_text(path) == "é"
    with pytest.raises(ValueError, match="2 bytes, more than 1"):
        read_text(path, 1)
    path.write_bytes(b"\xe9")
    with pytest.raises(ValueError, match="utf-8"):
        read_text(path)
    with pytest.raises(OSError, match="directory"):
        read_text(tmp_path)
