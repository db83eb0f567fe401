"""Disks that are full: what is written is whole, or the old file stays and an error says why.

Each disk is a small one in memory, all but a random rest of it taken up beforehand: from nothing to
more than is needed.  A training there is resumed once there is room, and compared with one that
nobody disturbed; a file, a picture, a page or a model is written over an old one.

A forked child mounts the disk, where nobody else sees it.  Where that is not allowed, a limit of
the length of a file takes its place.
"""

from __future__ import annotations

import ctypes
import io
import json
import os
import random
import resource
import shutil
import signal
import tempfile
import warnings
from collections import Counter
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import numpy as np

import tinygraph as tg
from tests.faults.memory_disk import memory_disk
from tests.faults.tally import Tally
from tests.training.networks import fingerprint, run_or_resume
from tinygraph.base.errors import TinygraphError
from tinygraph.cli import main

PAGE = 4096  # bytes that a file in memory grows by
DISK = 4 << 20
NEW_USER, NEW_MOUNTS, PRIVATE = 0x10000000, 0x00020000, 1 << 18 | 1 << 14
REASONS = "No space left on device", "File too large"


# ---- what is written ---------------------------------------------------------------------------


def arrays(path):
    tg.save({"w": np.arange(20_000.0), "n": 3}, path)


def model(path):
    tg.manual_seed(0)
    network = tg.nn.Sequential(tg.nn.Linear(60, 80), tg.nn.ReLU(), tg.nn.Linear(80, 2)).eval()
    tg.onnx.save(network, path, tg.ones(1, 60))


def some_loss():
    w = tg.Parameter(np.ones((9, 9), np.float32), name="w")
    return ((w @ w).relu() * w).sum()


ROWS = [{"epoch": i, "loss": 1 / (i + 1), "accuracy": 0.5} for i in range(30)]
WRITERS = {  # what is written, the name of the file, and what writes it
    "tg.save": ("a.safetensors", arrays),
    "a model": ("m.onnx", model),
    "a picture": ("g.svg", lambda path: tg.show.graph(some_loss(), path)),
    "curves": ("c.png", lambda path: tg.show.curves(ROWS, path)),
    "steps": ("s.html", lambda path: tg.show.steps(some_loss(), path)),
    "a report": ("r.html", lambda path: tg.show.report(tg.show.ReportContents(rows=ROWS), path)),
}

MOST = {"training": 25, "tg.save": 50, "a picture": 4, "show": 60}  # pages of room


# ---- disks -------------------------------------------------------------------------------------


class Disk:
    """A folder with so much room; `mounted` says whether it is a disk of its own."""

    def __init__(self, folder):
        self.folder = folder
        libc = ctypes.CDLL(None, use_errno=True)
        user, group = os.geteuid(), os.getegid()
        self.mounted = not libc.unshare(NEW_MOUNTS if user == 0 else NEW_USER | NEW_MOUNTS)
        if self.mounted and user:
            for name, line in (("setgroups", "deny"), ("uid_map", user), ("gid_map", group)):
                text = line if line == "deny" else f"{line} {line} 1"
                Path(f"/proc/self/{name}").write_text(text, encoding="ascii")
        libc.mount(b"none", b"/", None, PRIVATE, None)
        self.mounted = self.mounted and not libc.mount(
            b"tmpfs", os.fsencode(folder), b"tmpfs", 0, f"size={DISK}".encode()
        )

    @contextmanager
    def with_room_for(self, size):
        """So many bytes left, for a block of code."""
        if not self.mounted:
            before = resource.getrlimit(resource.RLIMIT_FSIZE)
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
            try:
                yield
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, before)
            return
        found = os.statvfs(self.folder)
        filler = self.folder / "filler"
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(found.f_bavail * found.f_frsize - size, 1))
        try:
            yield
        finally:
            filler.unlink()


# ---- the experiment ----------------------------------------------------------------------------


def write_once(disk, which, pages, tally, what):
    """A file over an old one."""
    name, write = WRITERS[which]
    path = disk.folder / name
    path.write_text("old", encoding="ascii")
    before, error = set(os.listdir(disk.folder)), None
    with disk.with_room_for(pages * PAGE):
        try:
            write(path)
        except Exception as found:
            error = found
    left = set(os.listdir(disk.folder)) - before
    content = path.read_bytes()
    path.unlink()
    if left:
        tally.fail(f"{what}: {sorted(left)} was left")
    elif error is None:
        write(path)
        right = path.read_bytes() == content
        path.unlink()
        (tally.add if right else tally.fail)(
            f"{which}: written" if right else f"{what}: not what is written with room"
        )
    elif why := _unclear(error):
        tally.fail(f"{what}: {why}")
    elif content != b"old":
        tally.fail(f"{what}: the old file has gone")
    else:
        tally.add(f"{which}: refused with the reason, the old file whole")


def _unclear(error):
    """What an error of a full disk lacks."""
    text = str(error)
    if not isinstance(error, TinygraphError) or "\n" in text:
        return repr(error)
    return "" if any(reason in text for reason in REASONS) else f"no reason in {text}"


def train_once(disk, pages, tally, what, expected):
    """A training that saves after every batch, and its end when there is room again."""
    path, error = disk.folder / "run", None
    with disk.with_room_for(pages * PAGE):
        try:
            run_or_resume(path, checkpoint_every=0.0)
        except Exception as found:
            error = found
    left = [str(each) for each in path.rglob("*.tmp")]
    try:
        if error is not None and (why := _unclear(error)):
            tally.fail(f"{what}: {why}")
        elif left:
            tally.fail(f"{what}: {left} was left")
        else:
            began = (path / "config.json").exists()
            end = "whole" if not error else "stopped, " if began else "refused before it began, "
            end += "then resumed with the same bits" if error and began else ""
            end += "then trained" if error and not began else ""
            if fingerprint(run_or_resume(path)) == expected:
                tally.add(f"a training: {end}")
            else:
                tally.fail(f"{what}: other bits")
    except Exception as found:
        tally.fail(f"{what}: {found!r}")
    shutil.rmtree(path, ignore_errors=True)


def command_once(disk, pages, tally, what, prepared):
    """`tinygraph show`: one line, and pages and pictures that are whole or as they were."""
    path = Path(shutil.copytree(prepared, disk.folder / "shown"))
    drawn = [each for each in path.iterdir() if each.suffix in (".svg", ".html", ".png")]
    for each in drawn:
        each.write_text("old", encoding="ascii")
    said = io.StringIO()
    with disk.with_room_for(pages * PAGE), redirect_stdout(io.StringIO()), redirect_stderr(said):
        code = main(["show", str(path)])
    lines = said.getvalue().splitlines()
    torn = [
        each.name
        for each in drawn
        if (text := each.read_bytes()) != b"old" and not text.rstrip().endswith((b">", b"\x82"))
    ]
    left = [each.name for each in path.rglob("*.tmp")]
    reasoned = len(lines) == 1 and any(reason in lines[0] for reason in REASONS)
    shutil.rmtree(path)
    if torn or left:
        tally.fail(f"{what}: {torn} torn, {left} left")
    elif code and reasoned:
        tally.add("show: one line of error, every page whole")
    elif code:
        tally.fail(f"{what}: exit code {code}, {lines[-3:]}")
    else:
        tally.add("show: written")


def experiments(folder, count, seed):
    """All of them, in a process that mounts a disk for itself."""
    tally, rng = Tally("full disks"), random.Random(seed)
    warnings.simplefilter("ignore")
    with redirect_stdout(io.StringIO()):
        main(["train", "xor_mlp", "--epochs", "5", "--run", str(folder / "prepared")])
        main(["show", str(folder / "prepared")])
    expected = fingerprint(run_or_resume(folder / "calm"))
    for name, write in WRITERS.values():  # what is loaded at first use writes files too
        write(folder / name)
    (folder / "disk").mkdir()
    disk = Disk(folder / "disk")
    for number in range(count):
        kind = rng.choice(["training"] * 8 + [*WRITERS] * 2 + ["show"])
        pages = rng.randrange(MOST.get(kind, 15))
        what = f"number {number}, {kind} with {pages} pages of room"
        if kind == "training":
            train_once(disk, pages, tally, what, expected)
        elif kind == "show":
            command_once(disk, pages, tally, what, folder / "prepared")
        else:
            write_once(disk, kind, pages, tally, what)
    tally.notes = "" if disk.mounted else "no disk could be mounted: files had a limit of length"
    return tally


def torment(count=1000, seed=0):
    """So many writes, each with room of its own."""
    with tempfile.TemporaryDirectory(dir=memory_disk()) as name:
        there, pipe = os.pipe()
        child = os.fork()
        if not child:
            code = 1
            with suppress(BaseException):
                os.close(there)
                found = json.dumps(vars(experiments(Path(name), count, seed)))
                with os.fdopen(pipe, "w", encoding="utf-8") as file:
                    file.write(found)
                code = 0
            os._exit(code)
        os.close(pipe)
        with os.fdopen(there, encoding="utf-8") as file:
            found = file.read()
        os.waitpid(child, 0)
    tally = Tally("full disks")
    if not found:
        tally.fail("the process with the disk died")
        return tally
    vars(tally).update(json.loads(found))
    tally.outcomes = Counter(tally.outcomes)
    return tally
