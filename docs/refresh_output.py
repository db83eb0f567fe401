"""Run the commands on the pages about kernels, and write what they print under them.

    python docs/refresh_output.py

A block ``cuda`` whose first line is `// NAME.cu` is a file.  Where tests/cuda/gallery/wrong has a
kernel of this name, the block is a copy of it, without its header.  A block ``console`` holds
commands and their output; they run in a folder with the files of the page.  What holds for these
pages is tested: tests/test_docs_kernels.py.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import tempfile
from pathlib import Path
from unittest import mock

from benchmarks import kernels
from tinygraph.base.errors import TinygraphError
from tinygraph.cli import main
from tinygraph.cuda import nvrtc

ROOT = Path(__file__).parents[1]
WRONG = ROOT / "tests/cuda/gallery/wrong"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/kernels").glob("*.md"))]

_BLOCK = re.compile(r"^```(?P<kind>cuda|console)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"// (?P<name>\w+\.cuh?)\n")
_NVRTC = re.compile(r"NVRTC (?P<version>\d+\.\d+)")


def blocks(page: str, kind: str) -> list[str]:
    """The texts of the blocks of one kind."""
    return [block["text"] for block in _BLOCK.finditer(page) if block["kind"] == kind]


def files(page: str) -> dict[str, str]:
    """The files of a page by name: they are what their blocks hold."""
    named = [(_FILE.match(text), text) for text in blocks(page, "cuda")]
    return {match["name"]: text for match, text in named if match}


def refreshed(page: str) -> str:
    """The page with the kernels of the gallery and the output of today."""
    page = _BLOCK.sub(
        lambda block: (
            _fenced(block["kind"], _from_gallery(block["text"]))
            if block["kind"] == "cuda"
            else block[0]
        ),
        page,
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files(page).items():
            Path(folder, name).write_text(text, encoding="utf-8")
        return _BLOCK.sub(
            lambda block: (
                _fenced("console", session(block["text"], folder))
                if block["kind"] == "console"
                else block[0]
            ),
            page,
        )


def _fenced(kind: str, text: str) -> str:
    return f"```{kind}\n{text}```"


def _from_gallery(text: str) -> str:
    """The kernel of the gallery that a block names; the block itself if it names none."""
    match = _FILE.match(text)
    path = WRONG / match["name"] if match else None
    if path is None or not path.exists():
        return text
    body = re.sub(r"\A(//.*\n)+", "", path.read_text(encoding="utf-8"))
    return f"// {path.name}\n" + re.sub(r" *// <- here$", "", body, flags=re.MULTILINE)


def session(text: str, folder: str) -> str:
    """The commands of a block, each with what it prints; paths in the folder lose it."""
    if _needs_another_nvrtc(text):
        return text
    out = []
    for command in re.findall(r"^\$ (?:.*\\\n)*.*\n", text, re.MULTILINE):
        printed = run(command[2:].replace("\\\n", " "), folder)
        out.append(command + printed.replace(f"{folder}/", ""))
    return "\n".join(out)


def _needs_another_nvrtc(text: str) -> bool:
    """Registers depend on the version of the compiler, which the output names."""
    match = _NVRTC.search(text)
    if not match:
        return False
    try:
        return nvrtc.version() != match["version"]
    except TinygraphError:
        return True  # it is not installed


def run(command: str, folder: str) -> str:
    """What a command prints, with `NAME=VALUE` before it for the environment."""
    words = shlex.split(command)
    environment = {}
    while words and "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    tool = words[:3] == ["python", "-m", "benchmarks.kernels"]
    if not tool and words[:1] != ["tinygraph"]:
        raise ValueError(f"a page runs `tinygraph` or benchmarks.kernels, not {command!r}")
    printed = io.StringIO()
    with (
        mock.patch.dict(os.environ, environment),
        contextlib.chdir(folder),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        kernels.main(words[3:]) if tool else main(words[1:])
    return printed.getvalue()


if __name__ == "__main__":
    for path in PAGES:
        before = path.read_text(encoding="utf-8")
        after = refreshed(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(path)
