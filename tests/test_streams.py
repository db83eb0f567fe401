"""Standard streams that are closed, broken off or of a small alphabet: no traceback, no loss."""

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.every_command import COURSE
from tests.faults import closed_streams
from tests.faults.closed_streams import LATIN
from tests.training.networks import loaders, trainer
from tinygraph.base import streams
from tinygraph.cli import main
from tinygraph.files.sealed import write_json
from tinygraph.training import Progress, RunFolder

ROOT = Path(__file__).parents[1]

# ---- every command ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    pytest.importorskip("PIL")
    return closed_streams.prepare(tmp_path_factory.mktemp("prepared"))


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork: Linux or macOS")
@pytest.mark.parametrize("setting", closed_streams.SETTINGS)
def test_one_call_of_every_command(prepared, tmp_path, setting):
    found = closed_streams.tried(prepared, tmp_path, setting)
    assert [words[0] for words, _ in found].count("course") == (13 if COURSE else 0)
    assert len(found) == (31 if COURSE else 18)
    assert not [(words, wrong) for words, wrong in found if wrong]


# ---- the parts -------------------------------------------------------------------------------


class Gone(io.StringIO):
    """A terminal that was closed, or a pipe without a reader."""

    def __init__(self, terminal=False):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal

    def write(self, text):
        raise BrokenPipeError(32, "Broken pipe")

    def flush(self):
        raise BrokenPipeError(32, "Broken pipe")


@pytest.mark.filterwarnings("ignore:.*batch.*:UserWarning")
@pytest.mark.parametrize("out", [None, Gone(), "closed", "ascii", "real"])
@pytest.mark.parametrize("err", [None, Gone(), Gone(terminal=True), "closed", "real"])
def test_a_training_needs_no_stream(monkeypatch, tmp_path, out, err):
    for name, stream in (("stdout", out), ("stderr", err)):
        if stream == "closed":
            stream = io.StringIO()
            stream.close()
        if stream == "ascii":
            stream = io.TextIOWrapper(io.BytesIO(), "ascii")
        if stream != "real":
            monkeypatch.setattr(sys, name, stream)
    run = RunFolder(tmp_path / "run")
    worker = trainer(run)
    worker.progress = Progress()
    worker.fit(*loaders(), 1)
    worker.progress.epoch({"epoch": 2, "größe": 1.0, "seconds": 0.1}, 2)
    assert [row["epoch"] for row in run.rows()] == [1]


def test_say(capsys):
    ascii_only = io.TextIOWrapper(io.BytesIO(), "ascii")
    assert streams.say(f"é {LATIN}", ascii_only)
    assert ascii_only.buffer.getvalue() == b"\\xe9 caf\\udce9\n"
    utf8 = io.TextIOWrapper(io.BytesIO(), "utf-8")
    assert streams.say(LATIN, utf8) and utf8.buffer.getvalue() == b"caf\\udce9\n"
    assert not streams.say("x", None) and not streams.say("x", Gone())
    assert streams.say("x", sys.stdout) and capsys.readouterr().out == "x\n"


@pytest.mark.parametrize("name", ["stdin", "stdout", "stderr"])
def test_the_command_where_a_stream_is_none(monkeypatch, name):
    monkeypatch.setattr(sys, name, None)
    assert main(["recipes"]) == 0
    assert main(["evaluate", "absent"]) == 2
    assert getattr(sys, name) is None


def test_how_a_stream_writes_is_put_back(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    assert main(["evaluate", "café"]) == 2
    with streams.standing():
        print(f"é {LATIN}", flush=True)
    assert stream.errors == "strict" and stream.buffer.getvalue() == b"\\xe9 caf\\udce9\n"


def test_a_closed_descriptor_is_no_file(tmp_path):
    """The next file that is opened would get its number, and what is written to stderr."""
    code = """
import os, sys
from tinygraph.base.streams import standing
with standing():
    file = open(sys.argv[1], "w")
    os.write(2, b"an error")
    assert file.fileno() > 2
    os.execv("/bin/sh", ["sh", "-c", "echo hello >&2"])  # a program has one too
"""
    path = tmp_path / "file"
    subprocess.run(["sh", "-c", '"$@" 2>&- >&-', "sh", sys.executable, "-c", code, str(path)],
                   env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)  # fmt: skip
    assert path.read_text(encoding="utf-8") == ""


def test_names_that_are_no_utf_8_come_back_from_json(tmp_path):
    content = {"command": [LATIN, "é", "名"], LATIN: 1}
    path = write_json(tmp_path / "a.json", content)
    assert json.loads(path.read_text(encoding="utf-8")) == content
    assert "é" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        *(pytest.param(a, marks=pytest.mark.second) for a in (["recipes"], ["train", "--help"])),
    ],
)
def test_a_reader_that_leaves_is_no_message(arguments):
    line = ["sh", "-c", '"$@" | true', "sh", sys.executable, "-m", "tinygraph", *arguments]
    done = subprocess.run(line, capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.stderr == b""


@pytest.mark.second
def test_a_full_device_is_one_line():
    line = ["sh", "-c", '"$@" >/dev/full', "sh", sys.executable, "-m", "tinygraph", "recipes"]
    done = subprocess.run(line, capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    assert b"No space left on device" in done.stderr


@pytest.mark.second
def test_a_terminal_that_is_closed_stops_no_training_that_ignores_it(tmp_path):
    """As after `nohup`, without its redirection: lines and bar go to a terminal that has gone."""
    import pty

    ours, theirs = pty.openpty()
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        train = ["train", "numba_cnn", "--filters", "1", "--epochs", "8", "--run", "run"]
        program = subprocess.Popen(
            [sys.executable, "-m", "tinygraph", *train], stdin=theirs, stdout=theirs, stderr=theirs,
            cwd=tmp_path, start_new_session=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        os.close(theirs)
        seen = b""
        while b"epoch 1/8" not in seen:
            seen += os.read(ours, 1000)
        os.close(ours)
        assert program.wait(100) == 0
    finally:
        signal.signal(signal.SIGHUP, before)
    assert (tmp_path / "run" / "result.json").exists()
