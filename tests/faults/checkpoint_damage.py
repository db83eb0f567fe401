"""Checkpoints damaged in every way: none may load silently wrong, none may end in a crash.

    raw         bits flipped, bytes written over, a sector of zeros, cut off, made longer, removed
    mixed       the file of another checkpoint under this name
    edited      header or document changed by a program that makes the SHA-256 right again

A damage is done to the newest checkpoint alone, where nothing else is left (only CheckpointError
will do), or beside the older one (its bits, with a warning), or to both.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path
from unittest import mock

import numpy as np

import tinygraph as tg
from tests.faults.memory_disk import memory_disk
from tests.faults.tally import Tally
from tests.training.networks import loaders, trainer
from tinygraph.base.errors import CheckpointError
from tinygraph.training import CheckpointWarning, RunFolder
from tinygraph.training.checkpoints import Checkpoints

# ---- bytes that are changed --------------------------------------------------------------------


def flip(data, rng):
    """One to eight flipped bits."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def overwrite(data, rng):
    """A run of bytes written over: noise, zeros like a lost sector, or another part of the file."""
    start = rng.randrange(len(data))
    size = rng.choice([1, 8, 64, 512])
    source = rng.randrange(len(data))
    run = rng.choice([bytes(size), rng.randbytes(size), data[source : source + size]])
    return data[:start] + run + data[start + size :]


def header_size(data, rng):
    """Another number in the first eight bytes."""
    size = rng.choice([0, 1, 2**63, 2**64 - 1, len(data), rng.getrandbits(64), rng.getrandbits(12)])
    return size.to_bytes(8, "little") + data[8:]


def truncate(data, rng):
    return data[: rng.choice([0, 1, 7, 8, 9, len(data) - 1, rng.randrange(len(data))])]


def extend(data, rng):
    more = rng.choice([b"\0", b" ", b"\0" * 512, rng.randbytes(rng.randint(1, 64)), data])
    return data + more


RAW = (flip, flip, flip, overwrite, header_size, truncate, extend)


# ---- programs that write a right SHA-256 -------------------------------------------------------


def split(data):
    """Header (a dict) and data of a safetensors file, read by the format's description."""
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def joined(header, body):
    """The file again, sealed as sealed.py describes it."""
    header["__metadata__"]["tinygraph.sha256"] = "0" * 64
    text = json.dumps(header, separators=(",", ":")).encode()
    blank = len(text).to_bytes(8, "little") + text + body
    return blank.replace(b"0" * 64, hashlib.sha256(blank).hexdigest().encode(), 1)


def edit_header(data, rng):
    """One entry of a header with another dtype, shape, place or name, or gone."""
    header, body = split(data)
    name = rng.choice([key for key in header if key != "__metadata__"])
    entry = header[name]
    kind = rng.choice(["dtype", "shape", "offsets", "name", "gone"])
    if kind == "dtype":
        same_size = {"F32": "I32", "I64": "F64", "U8": "I8"}
        entry["dtype"] = rng.choice([same_size[entry["dtype"]], "F16", "Q7", 3])
    elif kind == "shape":
        entry["shape"] = rng.choice([[*entry["shape"], 1], [1 << 62, 8], [-1], "x", []])
    elif kind == "offsets":
        entry["data_offsets"] = rng.choice([[0, 1 << 40], [8, 0], [-4, 0], [0], None])
    elif kind == "name":
        other = rng.choice(["", "x" * 300, f"optimizer/{name}", name + "/", "\0"])
        header[other] = header.pop(name)
    else:
        del header[name]
    return joined(header, body), f"{kind} of {name}: {entry}"


def edit_document(data, rng):
    """The document of a state without one of its entries, or with one of another kind."""
    header, body = split(data)
    start, stop = header["tinygraph.document"]["data_offsets"]
    document = json.loads(body[start:stop])
    place, path = document, []
    while True:
        key = rng.choice(list(place))
        path.append(key)
        if not (isinstance(place[key], dict) and place[key] and rng.random() < 0.6):
            break
        place = place[key]
    if rng.random() < 0.4:
        del place[key]
    elif path[0] in ("means", "generator", "schedule", "best") and rng.random() < 0.2:
        place[f"{key}_"] = 0
    else:
        other = {dict: [1], list: {"a": 1}, str: 7, int: "x", float: "x", bool: [], type(None): "x"}
        place[key] = rng.choice([other[type(place[key])], [[]] * 3, {"": None}])
    text = json.dumps(document).encode()
    if rng.random() < 0.05:
        text = rng.choice([b"", b"[" * 100_000, b"null", b"\xff", b"{}", b"[]", text[:-1]])
    did = "/".join(map(str, path)) + (f" = {place[key]!r}" if key in place else " gone")
    return with_array(header, body, "tinygraph.document", text), did


def with_array(header, body, name, content):
    """A file with other bytes (uint8) in one array; those behind it move."""
    arrays = {
        key: (entry, body[slice(*entry["data_offsets"])])
        for key, entry in header.items()
        if key != "__metadata__"
    }
    arrays[name] = {"dtype": "U8", "shape": [len(content)]}, content
    fresh, parts, place = {"__metadata__": dict(header["__metadata__"])}, [], 0
    for key, (entry, part) in arrays.items():
        fresh[key] = {**entry, "data_offsets": [place, place + len(part)]}
        place += len(part)
        parts.append(part)
    return joined(fresh, b"".join(parts))


def edit_label(data, rng):
    """Another version of the format, another name, or none."""
    header, body = split(data)
    start, stop = header["checkpoint"]["data_offsets"]
    label = body[start:stop]
    version = label.replace(b"format 3", rng.choice([b"format 2", b"format 99", b"format"]))
    name = label.replace(b"00000", rng.choice([b"00009", b"0000", b""]), 1)
    text = rng.choice([version, version, name, name, b"", b"{", label[:-1], label * 1000])
    return with_array(header, body, "checkpoint", text), repr(text[:40])


# ---- the experiment ----------------------------------------------------------------------------


class Interrupted(Exception):
    """Ends a training where a test wants it."""


def stopped_run(path, steps):
    """A run with checkpoints after steps - 1 and `steps` batches: bytes by name."""
    run = RunFolder(path)
    run.write_config({})
    worker = trainer(run, "adam", checkpoint_every=0.0)
    step = worker.step

    def counted(*batch):
        if worker.steps == steps:
            raise Interrupted
        return step(*batch)

    with mock.patch.object(worker, "step", counted), suppress(Interrupted):
        worker.fit(*loaders(), 3)
    folder = Checkpoints(run.checkpoints)
    return {name: (folder.folder / f"{name}.safetensors").read_bytes() for name in folder.names()}


def taken(worker):
    """All that a worker took from a checkpoint, as bytes and plain values."""
    state = worker.optimizer.state_dict()
    arrays = worker.model.state_dict() | {
        f"{name}/{key}": np.asarray(value)
        for name, own in state["state"].items()
        for key, value in own.items()
    }
    return (
        {name: (array.dtype.str, array.tobytes()) for name, array in arrays.items()},
        repr(state["groups"]),
        worker.schedule.state_dict(),
        vars(worker._means),
        worker.best,
        tg.random.default_generator.state_dict(),
        worker.epoch,
        worker.steps,
        worker.seconds,
    )


class Experiment:
    """A run folder in memory, whose checkpoints are damaged and put right again."""

    def __init__(self, folder, rng):
        self.rng = rng
        self.path = folder / "run"
        self.good = stopped_run(self.path, 5)
        self.older, self.newer = sorted(self.good)
        self.checkpoints = self.path / "checkpoints"
        self.worker = trainer(RunFolder.open(self.path), "adam")
        self.expected = {}
        for name in (self.newer, self.older):
            self.expected[name] = self.resumed()
            (self.checkpoints / f"{name}.safetensors").unlink()

    def resumed(self):
        """Resume, and look at the data as `fit` does first; what was taken."""
        before = taken(self.worker)
        try:
            self.worker.resume()
        except CheckpointError:
            if taken(self.worker) != before:
                raise RuntimeError("refused, and something had changed") from None
            raise
        loader = loaders()[0]
        self.worker._take_up(loader)
        return taken(self.worker), loader.state_dict()

    def put(self, name, data):
        """Write a checkpoint."""
        self.checkpoints.mkdir(exist_ok=True)
        (self.checkpoints / f"{name}.safetensors").write_bytes(data)

    def damaged(self, name):
        """The bytes of a checkpoint with one damage, and what it was."""
        rng, good, draw = self.rng, self.good[name], self.rng.random()
        if draw < 0.7:
            mutate = rng.choice(RAW)
            return mutate(good, rng), mutate.__name__
        if draw < 0.75:
            return self.good[self.older if name == self.newer else self.newer], "mixed"
        edit = rng.choice([edit_header, edit_header, edit_document, edit_document, edit_label])
        data, did = edit(good, rng)
        return data, f"{edit.__name__}: {did}"

    def once(self, tally):
        """One damage, and what becomes of it."""
        shutil.rmtree(self.checkpoints, ignore_errors=True)
        data, what = self.damaged(self.newer)
        fallback = self.rng.choice(["none", "whole", "damaged"])
        if fallback == "damaged":
            older, also = self.damaged(self.older)
            self.put(self.older, older)
            what += f", and {also}"
        elif fallback == "whole":
            self.put(self.older, self.good[self.older])
        self.put(self.newer, data)
        self.judge(tally, f"{what} (older: {fallback})")

    def judge(self, tally, what):
        """Only a CheckpointError, or the bits of a checkpoint that was saved, will do."""
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", CheckpointWarning)
                found = self.resumed()
        except CheckpointError as error:
            reasons = ("expected ", "does not fit")
            if not any(reason in str(error) for reason in reasons):
                tally.fail(f"{what}: no reason in: {error}")
            else:
                tally.add("refused with the reason")
            return
        except Exception as error:
            tally.fail(f"{what}: {error!r:.300}")
            return
        if found == self.expected[self.newer]:
            tally.add("loaded with all its bits: the edit meant the same")
        elif found == self.expected[self.older] and caught:
            tally.add("the checkpoint before taken, with a warning")
        elif found in self.expected.values():
            tally.fail(f"{what}: loaded without a word")
        else:
            tally.fail(f"{what}: loaded silently wrong")


def torment(count=100_000, seed=0):
    """Damage checkpoints `count` times."""
    tally = Tally("damaged checkpoints")
    warnings.filterwarnings("ignore", message="batch norm is training on")
    with tempfile.TemporaryDirectory(dir=memory_disk()) as folder:
        experiment = Experiment(Path(folder), random.Random(seed))
        for _ in range(count):
            experiment.once(tally)
    return tally
