"""Files of strangers, made by somebody who knows the formats: our error, or the right behaviour.

    models        ONNX files changed field by field (tests/onnx/mutated.py)
    parameters    safetensors with headers that claim other sizes, dtypes, places, or are deep
    arrays        .npy and idx with headers that claim other shapes and dtypes, or hold code
    runs          links in the place of files and folders; edited JSON, logs and parameters
    caches        compiled files that are cut, changed, links, or that others may write

Memory is limited, and so is the time for each.  What the user has beside a run is looked at after
each.
"""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import signal
import struct
import tempfile
import time
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

import numpy as np

import tinygraph as tg
from tests.faults.data_damage import forget_peak, memory_limit, resident
from tests.faults.memory_disk import memory_disk
from tests.faults.tally import Tally
from tinygraph.base import build_cache
from tinygraph.base.errors import TinygraphError
from tinygraph.cli import main
from tinygraph.data import NpyDataset, read_idx
from tinygraph.training import RunFolder, load_arrays

MEMORY = (
    2 << 30
)  # what one file may add to the address space; a model of a few bytes may need 1 GiB
SECONDS = 20

NUMBERS = (0, 1, -1, 2, 7, 255, 2**16, 2**31 - 1, 2**31, 2**40, 2**62, -(2**63), 2**64 - 1, 10**400)
VALUES = (*NUMBERS, None, True, "", "x", "\ud800", "../a", "1", [], [1], {}, {"a": 1}, 0.5, 1e308)
DEEP = "[" * 100_000


def within(value, rng):
    """A document of JSON with one value exchanged, gone, or twice."""
    places = []

    def look(each):
        inner = list(each.items()) if isinstance(each, dict) else list(enumerate(each))
        for key, found in inner:
            places.append((each, key))
            if isinstance(found, dict | list):
                look(found)

    if isinstance(value, dict | list):
        look(value)
    if not places or rng.random() < 0.05:
        return rng.choice(VALUES)
    holder, key = rng.choice(places)
    if rng.random() < 0.2:
        del holder[key]
    elif isinstance(holder, dict) and rng.random() < 0.1:
        holder[str(rng.choice(VALUES))[:20]] = holder[key]
    else:
        holder[key] = rng.choice(VALUES)
    return value


def edited(text, rng):
    """The text of a JSON document, as somebody has edited it."""
    kind = rng.randrange(10)
    if kind == 0:
        return rng.choice(["", "null", "NaN", DEEP, "{", text[: len(text) // 2], "[]", "5", '"x"'])
    if kind == 1:
        number = rng.choice(["NaN", "1e400", "-Infinity", "1" * 5000, DEEP])
        return text.replace(rng.choice(["0", "1", "2", '"seed"']), number, 1)
    try:
        return json.dumps(within(json.loads(text), rng))
    except (ValueError, RecursionError):  # it was edited before
        return text[::-1]


# ---- one file of each kind ---------------------------------------------------------------------


class Models:
    """ONNX files."""

    def __init__(self, folder):
        import onnx

        from tests.onnx import models, mutated

        self.mutated, self.path = mutated, folder / "model.onnx"
        self.sources = [make().SerializeToString() for make in models.ALL.values()]
        onnx.defs.get_all_schemas()  # loads them

    def once(self, rng):
        numbers = np.random.default_rng(rng.getrandbits(32))
        data = self.mutated.fields(numbers, rng.choice(self.sources))
        for _ in range(rng.choice([0, 0, 0, 1, 2])):
            data = self.mutated.fields(numbers, data)
        self.path.write_bytes(data)
        verdict, why = self.mutated.outcome(self.path, data)
        if why:
            raise RuntimeError(why)
        return {"ran": "computed", "loaded": "refused where it is computed"}.get(verdict, verdict)


class Parameters:
    """safetensors of another program, and tg.load of them."""

    def __init__(self, folder):
        self.path = folder / "a.safetensors"

    def once(self, rng):
        body = rng.randbytes(64)
        header = {
            "__metadata__": {"sha256": "0" * 64},
            "w": {"dtype": "F32", "shape": [2, 4], "data_offsets": [0, 32]},
            "b": {"dtype": "I64", "shape": [4], "data_offsets": [32, 64]},
        }
        text = edited(json.dumps(header), rng).encode("utf-8", "surrogatepass")
        size = len(text) if rng.random() < 0.8 else rng.choice(NUMBERS) % 2**64
        self.path.write_bytes(struct.pack("<Q", size) + text + body)
        if rng.random() < 0.1:
            os.truncate(self.path, rng.choice([2**36, 2**30, 40, 8, 0]))
        load = rng.choice([tg.load, lambda path: load_arrays(path, sealed=None)])
        if "w" in (found := load(self.path)) and found["w"].dtype == np.float32:
            said = np.frombuffer(body, np.float32, 8)
            if found["w"].size == 8 and found["w"].tobytes() not in (said.tobytes(), body[32:]):
                raise ValueError("other numbers than in the file")
        return "read"


class Arrays:
    """.npy and idx."""

    def __init__(self, folder):
        self.inputs, self.labels = folder / "x.npy", folder / "t.npy"
        self.idx = folder / "x.idx"
        np.save(self.labels, np.arange(4))

    def once(self, rng):
        if rng.random() < 0.3:
            rank = rng.choice([0, 1, 2, 3, 4, 255])
            sizes = b"".join(struct.pack(">I", rng.choice(NUMBERS) % 2**32) for _ in range(rank))
            code = rng.choice([8, 9, 11, 12, 13, 14, 0, 255])
            self.idx.write_bytes(bytes([0, 0, code, rank]) + sizes + bytes(64))
            found = read_idx(self.idx)
            return self._like(found.nbytes <= 64)
        shape = [4, 2, *[rng.choice(NUMBERS) for _ in range(rng.randrange(3))]]
        rng.shuffle(shape)
        others = [(4, 2), (4, 2), (True, 2), ("4", 2), 4, None, (4, 2.0), (4, -2)]
        shape = rng.choice([tuple(shape), *others])
        dtype = rng.choice(
            ["<f4", "<f4", "<f8", "|O", "<U9", "x", "<f4" * 9, "V8", [("a", "<f4")], 5]
        )
        text = repr(
            {"descr": dtype, "fortran_order": rng.choice([False] * 4 + [1]), "shape": shape}
        )
        text = rng.choice([text] * 6 + [text[:-1], "__import__('os').abort()", "(" * 5000, ""])
        version = rng.choice([1, 1, 1, 2, 3, 9])
        length = len(text) if rng.random() < 0.8 else rng.choice(NUMBERS)
        form = "<H" if version == 1 else "<I"
        length = struct.pack(form, length % 256 ** struct.calcsize(form))
        data = b"\x93NUMPY" + bytes([version, 0]) + length + text.encode()
        self.inputs.write_bytes(data + np.arange(8, dtype=np.float32).tobytes())
        dataset = NpyDataset(self.inputs, self.labels)
        image, label = dataset[1]
        return self._like(np.asarray(image).nbytes <= 32 and label == 1)

    def _like(self, right):
        if not right:
            raise ValueError("more numbers than the file has")
        return "read"


class Runs:
    """The folder of a run, looked at, evaluated and gone on with."""

    def __init__(self, folder):
        self.good, self.path, self.mine = folder / "good", folder / "run", folder / "mine"
        quick = ["--filters", "1", "--batch-size", "400", "--epochs", "1"]
        with redirect_stdout(io.StringIO()):
            if main(["train", "numba_cnn", *quick, "--run", str(self.good)]):
                raise RuntimeError("the run of the experiments failed")
            main(["show", str(self.good)])  # loads what it needs

    def once(self, rng):
        for each in (self.path, self.mine):
            shutil.rmtree(each, ignore_errors=True)
        shutil.copytree(self.good, self.path)
        self.mine.mkdir()
        for name in ("theirs", "of others"):
            (self.mine / name).mkdir()
            (self.mine / name / ".000001-000000001.safetensors.1-0123456789abcdef.tmp").touch()
        for _ in range(rng.choice([1, 1, 2])):
            self._spoil(rng)
        before = self._elsewhere()
        try:
            return self._use(rng)
        finally:
            after = self._elsewhere()
            if after != before:
                raise RuntimeError("something outside the folder of the run was changed")

    def _elsewhere(self):
        return {
            str(path): path.read_bytes() if path.is_file() else None
            for path in self.mine.rglob("*")
        }

    def _spoil(self, rng):
        found = [path for path in sorted(self.path.rglob("*")) if not path.is_symlink()]
        kind = rng.randrange(3)
        if kind == 0:  # a link in the place of a file or a folder
            place = rng.choice(found)
            target = self.mine / f"{place.name}{rng.random()}"
            if place.is_file() and rng.random() < 0.8:
                place.rename(target)
            elif place.is_dir():
                shutil.rmtree(place)
                target = self.mine / "theirs"
            else:
                place.unlink()
            place.symlink_to(target)
            return
        texts = [path for path in found if path.suffix in (".json", ".jsonl")]
        place = rng.choice(texts if kind == 1 else [p for p in found if p.is_file()])
        if place in texts:
            text = edited(place.read_text(encoding="utf-8"), rng)
            place.write_bytes(f"{text}\n".encode("utf-8", "surrogatepass"))
        elif rng.random() < 0.3:
            os.truncate(place, rng.choice([2**36, 0, 9]))
        else:
            data = place.read_bytes()
            place.write_bytes(rng.choice([b"", data[:50], rng.randbytes(99), data + b"x"]))

    def _use(self, rng):
        which = rng.choice(["show", "evaluate", "resume", "library"])
        if which == "library":
            run = RunFolder.open(self.path)
            run.rows(), run.result(), run.environment(), run.tuning(), run.load_parameters()
            return "read"
        words = ["train", "--resume", str(self.path), "--epochs", "2"]
        words = words if which == "resume" else [which, str(self.path)]
        said = io.StringIO()
        with redirect_stdout(io.StringIO()), redirect_stderr(said):
            code = main(words)
        if code and not said.getvalue().startswith(("error: ", "usage: ")):
            raise RuntimeError(f"{words[0]}: exit code {code}: {said.getvalue()[-300:]}")
        if code not in (0, 1, 2):
            raise RuntimeError(f"{words[0]}: exit code {code}")
        return f"{which}: refused" if code else f"{which}: done"


class Caches:
    """A cache folder in which others have been."""

    def __init__(self, folder):
        self.home, self.theirs = folder / "cache", folder / "their.so"
        self.theirs.write_bytes(b"theirs")

    def once(self, rng):
        self.home.mkdir(mode=0o755)
        with mock.patch.dict(os.environ, {"TINYGRAPH_CACHE": str(self.home)}):
            try:
                return self._once(rng)
            finally:
                shutil.rmtree(self.home)

    def _once(self, rng):
        def build(path):
            path.write_bytes(b"ours")

        path = build_cache.compiled(["x"], ".so", build)
        mark = path.with_name(f"{path.name}.sha256")
        kind = rng.randrange(7)
        for place in [path, mark] if rng.random() < 0.3 else [rng.choice([path, mark])]:
            if kind == 0:
                place.write_bytes(rng.choice([b"", b"our", b"theirs", b"\xff" * 64]))
            elif kind == 1:
                place.unlink()
                place.symlink_to(self.theirs)
            elif kind == 2:  # of somebody who knows how a file is sealed
                path.write_bytes(b"theirs")
                mark.write_text(build_cache.sum_of(path), encoding="ascii")
                place.chmod(rng.choice([0o666, 0o777, 0o664]))
            elif kind == 3:
                place.unlink()
            elif kind == 4:
                place.unlink()
                place.mkdir()
            elif kind == 5 and os.geteuid() == 0:
                path.write_bytes(b"theirs")
                mark.write_text(build_cache.sum_of(path), encoding="ascii")
                os.chown(place, 65534, 65534)
            else:
                path.write_bytes(b"theirs")
                mark.write_text(build_cache.sum_of(path), encoding="ascii")
                self.home.chmod(rng.choice([0o777, 0o1777, 0o775]))
        found = build_cache.compiled(["x"], ".so", build)
        if found.read_bytes() != b"ours":
            raise ValueError("a file of others is loaded")
        private = self.home not in found.parents
        found.unlink() if private else None
        return "a private folder taken" if private else "built again, or whole"


KINDS = {
    "models": Models,
    "parameters": Parameters,
    "arrays": Arrays,
    "runs": Runs,
    "caches": Caches,
}
SHARES = {"models": 8, "parameters": 4, "arrays": 4, "runs": 1, "caches": 2}


# ---- the experiment ----------------------------------------------------------------------------


def too_slow(*_):
    raise TimeoutError(f"more than {SECONDS} seconds")


def once(kind, trial, rng, tally, what):
    """One file, and the seconds that it took."""
    started = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        tally.add(f"{kind}: {trial.once(rng)}")
    except TinygraphError as error:
        text = str(error)
        if "\n" in text.strip() or not text:
            tally.fail(f"{what}: {text!r:.300} is not one line")
        else:
            tally.add(f"{kind}: refused")
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        tally.fail(f"{what}: {error!r:.600}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return time.perf_counter() - started


def torment(count=5000, seed=0, kinds=tuple(KINDS)):
    """So many files, each drawn by its own number and the seed."""
    tally, longest = Tally("hostile files"), 0.0
    handler = signal.signal(signal.SIGALRM, too_slow)
    with tempfile.TemporaryDirectory(dir=memory_disk()) as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trials = {kind: KINDS[kind](Path(name)) for kind in kinds}
        before = resident("VmRSS")
        forget_peak()
        with memory_limit(MEMORY):
            for number in range(count):
                rng = random.Random(f"{seed}/{number}")
                kind = rng.choices(list(trials), [SHARES[each] for each in trials])[0]
                what = f"number {number}, {kind}"
                longest = max(longest, once(kind, trials[kind], rng, tally, what))
        tally.notes = (
            f"peak memory grew by {resident('VmHWM') - before:.0f} MiB "
            f"(limit {MEMORY >> 20}), the longest took {longest:.1f} s (limit {SECONDS})"
        )
    signal.signal(signal.SIGALRM, handler)
    return tally
