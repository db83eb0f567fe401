"""The protocol of a project: what was predicted, what was done, and figures that can be had again.

A protocol is a TOML file beside the parameters that it speaks of; the text of exercise 16 has one
of each kind.  It is looked at twice.

Before the results are in it, what it states is sealed, predictions and settings: their SHA-256 and
the time go into `.course/predictions.json`.  With the results in it, each figure is computed again
from the saved parameters.  That keeps honest people honest: clocks and files can be set by their
owner.
"""

from __future__ import annotations

import hashlib
import json
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tinygraph as tg
from tinygraph.base.errors import ArgumentError, CheckpointError, DatasetError, ShapeError
from tinygraph.base.json_files import parse, read_text
from tinygraph.base.paths import typed
from tinygraph.files.sealed import write_json
from tinygraph_course.commands.figures import accuracy, qualities
from tinygraph_course.commands.folder import CourseFolder

SEALED = Path(".course") / "predictions.json"
WITHIN = {"dB": 0.02, "share": 0.002}  # what rounding, and another BLAS, may change
TIMES = 5  # of each setting
LEAST = 20  # characters of a prediction


class Row(NamedTuple):
    """One thing that was looked at; `state` is "ok", "wrong" or "open"."""

    state: str
    what: str
    why: str = ""


def verified(path: Path, data_dir: Path | None = None) -> list[Row]:
    """What is right, wrong or open in a protocol.

    Parameters
    ----------
    path : Path
        The file.  Its folder, or one above it, is that of the course.
    data_dir : Path, optional
        The folder with T91 and Set5; by default that of $TINYGRAPH_DATA.

    Raises
    ------
    ArgumentError
        There is no such file, it is no TOML, or of no kind that is known.
    """
    about = _read(path)
    rows = list(_fields(about))
    if rows:
        return rows
    rows = list(_sealed(path, about))
    if "result" not in about:
        return [*rows, Row("open", "results", "there is no [result] yet")]
    looked_at: dict[str, Callable[..., Iterator[Row]]] = {"srcnn": _srcnn, "numba_cnn": _numba_cnn}
    try:
        rows += looked_at[about["project"]](path, about, data_dir)
    except DatasetError as error:  # nothing is claimed of what nobody has seen
        rows.append(Row("open", "figures", f"not computed again. {error}"))
    except (CheckpointError, ShapeError) as error:
        rows.append(Row("wrong", "parameters", f"{error}"))
    return rows


# ---- fields -------------------------------------------------------------------------------------

_NUMBERS, _WORDS = (int, float), (str,)
FIELDS: dict[str, dict[str, tuple[type, ...]]] = {
    "srcnn": {
        "prediction": _WORDS,
        "seed": (int,),
        "scale": (int,),
        "held": (int,),
        "epochs": (int,),
        "parameters": _WORDS,
    },
    "numba_cnn": {"seeds": (list,), "accuracy": (dict,), "time": (dict,)},
}
RESULTS: dict[str, dict[str, tuple[type, ...]]] = {
    "srcnn": {"validation": (list,), "epoch": (int,), "psnr": _NUMBERS, "bicubic": _NUMBERS},
    "numba_cnn": {
        "accuracy": (list,),
        "parameters": (list,),
        "seconds": (dict,),
        "medians": (dict,),
    },
}

LISTS: dict[str, tuple[type, ...]] = {
    "validation": _NUMBERS,
    "accuracy": _NUMBERS,
    "seeds": (int,),
    "parameters": _WORDS,
}


def _all(values: list[Any], kinds: tuple[type, ...]) -> bool:
    return all(isinstance(value, kinds) and not isinstance(value, bool) for value in values)


def _read(path: Path) -> dict[str, Any]:
    try:
        about = tomllib.loads(read_text(path))
    except FileNotFoundError:
        way_out = "the text of exercise 16, 16_projects.md, has one of each kind to copy"
        raise ArgumentError("course protocol", "file", f"{path}", "none", way_out) from None
    except (OSError, ValueError, RecursionError) as error:
        raise ArgumentError("course protocol", "file", f"{path} as TOML", f"{error}") from None
    if about.get("project") not in list(FIELDS):
        expected = " or ".join(f'"{name}"' for name in FIELDS)
        raise ArgumentError("course protocol", "project", expected, about.get("project"))
    return about


def _fields(about: Mapping[str, Any]) -> Iterator[Row]:
    """What is missing, or of another type."""
    project = about["project"]
    for part, asked in (("", FIELDS), ("result", RESULTS)):
        given = about.get(part) if part else about
        if given is None:
            continue
        for name, kinds in asked[project].items():
            where = f"{part}.{name}" if part else name
            value = given.get(name) if isinstance(given, dict) else None
            if value is None:
                yield Row("wrong", where, "is missing")
            elif not isinstance(value, kinds) or isinstance(value, bool):
                yield Row("wrong", where, f"expected {kinds[-1].__name__}, got {value!r}")
            elif isinstance(value, list) and not (value and _all(value, LISTS[name])):
                yield Row("wrong", where, f"expected a list of {LISTS[name][-1].__name__}")
    for where, words in _predictions(about).items():
        if not isinstance(words, str) or len(words.strip()) < LEAST:
            yield Row("wrong", where, f"expected a sentence of {LEAST} characters or more")


def _predictions(about: Mapping[str, Any]) -> dict[str, Any]:
    """The predictions, by where they stand."""
    if about["project"] == "srcnn":
        return {"prediction": about.get("prediction")}
    parts = ((name, about.get(name)) for name in ("accuracy", "time"))
    return {
        f"{name}.prediction": part.get("prediction") if isinstance(part, dict) else None
        for name, part in parts
    }


# ---- the seal -----------------------------------------------------------------------------------


def _sealed(path: Path, about: Mapping[str, Any]) -> Iterator[Row]:
    """Seal what is stated before there are results; afterwards see that it is the same."""
    book, name = _book(path)
    known = _known(book)
    stated = {key: value for key, value in about.items() if key not in ("result", "parameters")}
    words = json.dumps(stated, sort_keys=True, default=str)  # TOML has times, which JSON has not
    digest = hashlib.sha256(words.encode()).hexdigest()
    if "result" not in about:
        if name not in known or known[name]["sha256"] != digest:
            known[name] = {"sha256": digest, "time": time.time()}
            write_json(book, known)
        yield Row(
            "ok", "what is stated", f"sealed {_when(known[name]['time'])}; results may come now"
        )
        return
    entry = known.get(name)
    if entry is None:
        yield Row("wrong", "what is stated", "was not sealed: look at the protocol before [result]")
        return
    if entry["sha256"] != digest:
        yield Row(
            "wrong", "what is stated", f"was changed after {_when(entry['time'])}, when sealed"
        )
        return
    yield Row("ok", "what is stated", f"sealed {_when(entry['time'])}")
    for file in _files(path, about):
        if file.exists() and file.stat().st_mtime < entry["time"]:
            yield Row("wrong", file.name, "is older than the seal")


def _once(path: Path, about: Mapping[str, Any]) -> Iterator[Row]:
    """Whether the test was measured with one set of parameters here; this one is noted."""
    book, name = _book(path)
    known = _known(book)
    if name not in known:
        return
    whole = hashlib.sha256(b"".join(file.read_bytes() for file in _files(path, about))).hexdigest()
    seen = known[name].setdefault("measured", [])
    if whole not in seen:
        seen.append(whole)
        write_json(book, known)
    if len(seen) == 1:
        yield Row("ok", "test data", "measured here with one set of parameters")
        return
    why = f"measured here with {len(seen)} sets of parameters: a test that is repeated chooses"
    yield Row("wrong", "test data", why)


def _book(path: Path) -> tuple[Path, str]:
    """Where protocols are sealed, and the name of this one there."""
    whole = path.resolve()
    root = next((each for each in whole.parents if (each / ".course").is_dir()), None)
    if root is None:
        way_out = f"tinygraph course start {typed(whole.parent)} begins one"
        raise ArgumentError("course protocol", "file", "in a folder of the course", path, way_out)
    return CourseFolder(root).path / SEALED, whole.relative_to(root).as_posix()


def _known(book: Path) -> dict[str, Any]:
    try:
        found = parse(read_text(book))
    except (OSError, ValueError):
        return {}
    good = isinstance(found, dict) and all(
        isinstance(entry, dict) and isinstance(entry.get("time"), float) and "sha256" in entry
        for entry in found.values()
    )
    return found if good else {}


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def _files(path: Path, about: Mapping[str, Any]) -> list[Path]:
    of = about if about["project"] == "srcnn" else about["result"]
    names = [of["parameters"]] if isinstance(of["parameters"], str) else of["parameters"]
    return [path.parent / str(name) for name in names]


# ---- figures ------------------------------------------------------------------------------------


def _srcnn(path: Path, about: Mapping[str, Any], data_dir: Path | None) -> Iterator[Row]:
    """The epoch by its curve; PSNR on the pictures held out and on Set5, again."""
    result = about["result"]
    curve = [float(value) for value in result["validation"]]
    if len(curve) != about["epochs"]:
        why = f"{len(curve)} figures for {about['epochs']} epochs"
        yield Row("wrong", "result.validation", why)
        return
    best = int(np.argmax(curve)) + 1
    same = result["epoch"] == best
    why = f"{best} is the best one on the validation; you say {result['epoch']}"
    yield Row("ok" if same else "wrong", "epoch", why)
    (file,) = _files(path, about)
    parameters = tg.load(file)
    found = qualities(parameters, about["seed"], about["held"], about["scale"], data_dir)
    yield _figure("validation", curve[best - 1], found["validation"], "dB")
    yield _figure("result.bicubic", result["bicubic"], found["bicubic"], "dB")
    yield _figure("result.psnr", result["psnr"], found["psnr"], "dB")
    gain = found["psnr"] - found["bicubic"]
    yield Row("ok" if gain > 0 else "wrong", "Set5", f"{gain:+.2f} dB beside bicubic interpolation")
    yield from _once(path, about)


def _numba_cnn(path: Path, about: Mapping[str, Any], data_dir: Path | None) -> Iterator[Row]:
    """Accuracies on the digits again, medians of the seconds."""
    result, seeds = about["result"], about["seeds"]
    if len(set(seeds)) < 3 or len(seeds) != len(set(seeds)):
        yield Row("wrong", "seeds", f"expected three or more different ones, got {seeds}")
    for name in ("accuracy", "parameters"):
        if len(result[name]) != len(seeds):
            why = f"expected one for each of {len(seeds)} seeds, got {len(result[name])}"
            yield Row("wrong", f"result.{name}", why)
            return
    for seed, said, file in zip(seeds, result["accuracy"], _files(path, about), strict=True):
        yield _figure(f"accuracy, seed {seed}", said, accuracy(tg.load(file)), "share")
    yield from _once(path, about)
    for setting, seconds in result["seconds"].items():
        if not isinstance(seconds, list) or len(seconds) < TIMES or not _all(seconds, _NUMBERS):
            yield Row("wrong", f"result.seconds.{setting}", f"expected {TIMES} numbers or more")
            continue
        said, median = result["medians"].get(setting), float(np.median(seconds))
        right = isinstance(said, _NUMBERS) and abs(said - median) <= 0.01 * median
        why = f"the median of {len(seconds)} is {median:.4g} s"
        yield Row("ok" if right else "wrong", f"result.medians.{setting}", why)
    if len(result["seconds"]) < 2:
        yield Row("wrong", "result.seconds", "expected two settings or more, to compare")


def _figure(what: str, said: float, found: float, unit: str) -> Row:
    """Whether a figure is the one that was computed again."""
    number = f"{found:.2f} dB" if unit == "dB" else f"{found:.4f}"
    right = isinstance(said, _NUMBERS) and abs(said - found) <= WITHIN[unit]
    return Row("ok" if right else "wrong", what, f"computed again: {number}; you say {said}")
