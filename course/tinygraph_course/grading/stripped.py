"""A wheel of the package without the solutions of the course, for the machines of learners.

Of an exercise stay the untouched file, the text, the predictions, and titles and hints of the
steps.  The format: packaging.python.org, "Binary distribution format".
"""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from io import BytesIO
from pathlib import Path

import tinygraph
from tinygraph.base.errors import ArgumentError
from tinygraph.files.sealed import write_atomically
from tinygraph_course.content.exercise import Exercise, exercises
from tinygraph_course.grading.packages import is_ours, program_files

NAME = "tinygraph-nn"
_KEPT = ("exercise.toml", "text.md", "hints.md")
_META = ("METADATA", "entry_points.txt", "licenses/LICENSE")
_TIME = (2000, 1, 1, 0, 0, 0)  # of every file: the same wheel is made twice
_WHEEL = """\
Wheel-Version: 1.0
Generator: tinygraph
Root-Is-Purelib: true
Tag: py3-none-any
"""


def write_stripped(folder: Path) -> Path:
    """Write the wheel into a folder.

    Returns
    -------
    Path
        The wheel; its version ends with "+stripped".

    Raises
    ------
    ArgumentError
        The package is not installed, so that nothing says what it needs.
    """
    contents = {name: path.read_bytes() for name, path in program_files()}
    for exercise in exercises():
        if is_ours(exercise.folder):
            place = f"tinygraph_course/exercises/{exercise.name}"
            contents |= {f"{place}/{name}": data for name, data in _left(exercise)}
    version = f"{tinygraph.__version__}+stripped"
    stem = f"{NAME.replace('-', '_')}-{version}"
    contents |= {f"{stem}.dist-info/{name}": data for name, data in _about(version)}
    record = f"{stem}.dist-info/RECORD"
    lines = [f"{name},{_digest(data)},{len(data)}" for name, data in contents.items()]
    contents[record] = "\n".join([*lines, f"{record},,", ""]).encode()
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in contents.items():
            entry = zipfile.ZipInfo(name, _TIME)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
            wheel.writestr(entry, data)
    return write_atomically(folder / f"{stem}-py3-none-any.whl", out.getvalue())


def _left(exercise: Exercise) -> Iterator[tuple[str, bytes]]:
    """What stays of an exercise; the untouched file stands in the place of the solution."""
    for name in _KEPT:
        if (exercise.folder / name).exists():
            yield name, (exercise.folder / name).read_bytes()
    yield f"solution{Path(exercise.file).suffix}", exercise.stub.encode()


def _about(version: str) -> Iterator[tuple[str, bytes]]:
    """What pip reads: of the package as it is installed here, with another version."""
    try:
        installed = distribution(NAME)
    except PackageNotFoundError:
        way_out = "pip install it, also where you work in a checkout"
        expected = "to be installed"
        raise ArgumentError("course build", NAME, expected, "not installed", way_out) from None
    for name in _META:
        text = installed.read_text(name)
        if text is None:
            continue
        if name == "METADATA":
            text = text.replace(f"\nVersion: {installed.version}\n", f"\nVersion: {version}\n", 1)
        yield name, text.encode()
    yield "WHEEL", _WHEEL.encode()


def _digest(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return f"sha256={digest.decode()}"
