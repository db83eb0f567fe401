"""Every command where a stream is closed or broken off, or knows few characters.

One call of each command (tests/every_command.py), each in a process of its own, with streams, names
and locale as a setting says.  None may end in a traceback, and each training must come to its end.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np

import tinygraph as tg
from tests.every_command import COURSE, OP, PROGRAM, SCALE, commands
from tests.faults.tally import Tally
from tinygraph.cli import main
from tinygraph.training import RunFolder

ROOT = Path(__file__).parents[2]
LATIN = os.fsdecode(b"caf\xe9")
C = {"LC_ALL": "C", "PYTHONUTF8": "0"}

# What a shell puts behind the command, the name of the folder, and the environment.
SETTINGS = {
    "no stdin": ("<&-", "plain", {}),
    "no stdout": (">&-", "plain", {}),
    "no stderr": ("2>&-", "plain", {}),
    "head": ("| true", "plain", {}),
    "ASCII": ("", "café", {"PYTHONIOENCODING": "ascii"}),
    "Latin-1": ("", "名前", {"PYTHONIOENCODING": "latin-1"}),
    "C": ("", "café", C),
    "no UTF-8": ("", LATIN, {}),
}
MORE = {
    "no stream": ("<&- >&- 2>&-", "plain", {}),
    "both broken": ("2>&1 | true", "plain", {}),
    "no UTF-8 in C": ("", LATIN, C),
    "as it is": ("", "plain", {}),
}


def prepare(folder):
    """What the commands ask for: runs, a picture, parameters, kernels, a course, a submission."""
    from PIL import Image

    text = folder / "text.txt"
    text.write_text("to be or not to be, that is the question. " * 60, encoding="utf-8")
    small = ["--set", "context=8", "--set", "windows=24", "--set", "hidden=8", "--epochs", "1"]
    quick = ["numba_cnn", "--filters", "1", "--epochs", "1"]
    for words in (
        ["train", *quick, "--run", str(folder / "numba")],
        ["train", "lstm_text", "--data", str(text), *small, "--run", str(folder / "text")],
        *([["course", "start", str(folder / "course")]] if COURSE else []),
    ):
        with redirect_stdout(io.StringIO()):
            if main(words):
                raise RuntimeError(f"{words} failed")
    layers = [tg.nn.Conv2d(1, 4, 5), tg.nn.ReLU(), tg.nn.Conv2d(4, 4, 1), tg.nn.ReLU()]
    network = tg.nn.Sequential(*layers, tg.nn.Conv2d(4, 1, 5))
    tg.training.save_arrays(folder / "p", network.state_dict())
    for name, content in (("scale.cu", SCALE), ("program.cu", PROGRAM), ("my_op.py", OP)):
        (folder / name).write_text(content, encoding="utf-8")
    if COURSE:
        (folder / "submission").mkdir()
        shutil.copy(folder / "course" / "01_neuron.py", folder / "submission")
    Image.fromarray(np.zeros((9, 11, 3), np.uint8)).save(folder / "in.png")
    return folder


def tried(prepared, place, setting):
    """What each command did in a setting: pairs of its words and what is wrong, "" for nothing."""
    behind, name, more = (SETTINGS | MORE)[setting]
    folder = Path(shutil.copytree(prepared, place / name))
    report, err = place / "report", place / "err"
    errors = "" if "2>" in behind else f"2>{err}"
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", "NO_COLOR": "1", **more,
    }  # fmt: skip
    harness = [sys.executable, "-m", "tests.every_command", folder, report]
    done = subprocess.run(
        ["bash", "-c", f'set -o pipefail; "$@" {errors} {behind}', "sh", *harness],
        stdin=subprocess.DEVNULL, capture_output=True, cwd=ROOT, env=environment, timeout=900,
    )  # fmt: skip
    said = err.read_text(encoding="utf-8", errors="replace") if err.exists() else ""
    rows = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    found = [(row["words"], _wrong(row, "| true" in behind)) for row in rows]
    whole = done.returncode == 0 and len([r for r in rows if "code" in r]) == len(commands(""))
    found += [] if whole else [(["all"], f"{len(rows)} of {len(commands(''))} commands ran")]
    if "Traceback" in said or "Exception ignored" in said:
        found.append((["all"], said[-1000:]))
    return found + _lost(folder)


def _wrong(row, unread):
    """What is wrong with a call.  What nobody reads ends a command early, but no training."""
    if "traceback" in row:
        return row["traceback"]
    codes = {row["expected"]}
    if unread and row["words"][0] not in ("train", "experiment"):
        codes |= {1, 128 + signal.SIGPIPE}  # the latter of a program that run-cuda runs
    return "" if row["code"] in codes else f"exit code {row['code']}"


def _lost(folder):
    """Trainings that are not there as a whole."""
    found = []
    for name, epochs in (("new", 2), ("xor", 5)):
        try:
            run = RunFolder.open(folder / name)
            whole = run.result()["test"] and run.rows()[-1]["epoch"] == epochs
            found += [] if whole else [(["train", name], "it is not whole")]
        except Exception as error:
            found.append((["train", name], repr(error)))
    return found


def torment(count=300, seed=0):
    """Settings by turns, until so many calls were made."""
    tally, settings = Tally("closed streams"), [*SETTINGS, *MORE]
    with tempfile.TemporaryDirectory() as name:
        prepared = Path(name) / "prepared"
        prepared.mkdir()
        prepare(prepared)
        for turn in range(seed, seed + len(settings)):
            setting = settings[turn % len(settings)]
            place = Path(name) / str(turn)
            place.mkdir()
            for words, wrong in tried(prepared, place, setting):
                if wrong:
                    tally.fail(f"{setting}: {' '.join(words[:2])}: {wrong}")
                else:
                    tally.add(f"as it should, {setting}")
            shutil.rmtree(place)
            if tally.count >= count:
                break
    return tally
