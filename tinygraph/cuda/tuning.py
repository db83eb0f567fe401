"""tuning(): measure on the GPU how a product is best computed, and remember it.

    with tg.cuda.tuning():
        trainer.step(x, t)              products of shapes that are new are measured
    tg.cuda.tuned()                     what was chosen, here and in earlier processes

Without measurements the shape alone chooses tile and chunks (ops/shared).  A measured choice is
one for a problem: shape, layout, dtype, precision, name of the GPU and digest of the kernel's
source.  It stands in a file in the folder of the cache, which every process reads once, and is used
from then on, also outside of `tuning`.

Candidates differ in the order in which they add: a choice changes the rounding of results, nothing
else.  So equal bits need equal choices.  `forget_tuning` returns to those by shape, and
`tg.training.environment` lists what was chosen.

    candidate    launched a few times in one CUDA graph, so that the host's own time is left out
    round        each candidate once, one after the other: a change of the clock meets all of them
    choice       the smallest median of the rounds
"""

from __future__ import annotations

import fcntl
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tinygraph.cuda.capture import active_capture
from tinygraph.cuda.reading.source import KERNELS, Source
from tinygraph.cuda.recording import active_recorder
from tinygraph.device import cupy, get_device
from tinygraph.disk import replace_file
from tinygraph.errors import DeviceError

Problem = Mapping[str, Any]
Choice = dict[str, int]
Launch = Callable[[], None]

VERSION = 1  # of the file
FILE = "tuned.json"
ROUNDS = 7
REPEATS = 5  # launches of a candidate in one round

_active: ContextVar[bool] = ContextVar("tuning", default=False)


@dataclass
class _Known:
    """What this process knows of the file."""

    entries: dict[str, dict[str, Any]] | None = None  # by their keys; None before it was read
    checked: set[str] = field(default_factory=set)  # keys whose choice is a candidate
    changes: int = 0  # how often a choice was added, or all were forgotten


_known = _Known()


@contextmanager
def tuning() -> Iterator[None]:
    """Within it, products of new shapes on device "cuda" are measured before they are computed.

    Measured are float32 and float64 products of `matmul` and `linear`, with their gradients.  The
    first step takes longer; GPU memory for parts of sums is needed once.  Nothing is measured while
    a step is captured or launches are recorded: call the step once before.

    Raises
    ------
    DeviceError
        Without a GPU: times of the emulator say nothing about one.

    References
    ----------
    Whaley, Petitet, Dongarra, "Automated empirical optimizations of software and the ATLAS
    project", Parallel Computing 27, 2001.

    Examples
    --------
    >>> with tuning():  # doctest: +SKIP
    ...     trainer.step(x, t)
    """
    try:
        get_device("cuda")
    except DeviceError as error:
        raise DeviceError(
            "tuning",
            "device",
            "an NVIDIA GPU: times of the emulator say nothing about one",
            str(error),
            "leave tuning() out; shapes choose then",
        ) from error
    token = _active.set(True)
    try:
        yield
    finally:
        _active.reset(token)


def tuned() -> list[dict[str, Any]]:
    """The measured choices of all GPUs that the file of the cache names, as plain dicts.

    Each has the keys "problem", "gpu", "kernels" (a digest), "choice" and "microseconds": the
    median of every candidate.

    >>> isinstance(tuned(), list)
    True
    """
    return [dict(entry) for entry in _entries().values()]


def forget_tuning() -> None:
    """Remove all measured choices, from the file too: shapes choose again."""
    path = _path()
    with _locked(path):
        path.unlink(missing_ok=True)
    _known.entries = {}
    _known.checked.clear()
    _known.changes += 1


def tuning_state() -> tuple[bool, int]:
    """Equal for two moments between which no choice has changed, nor whether new ones are made."""
    return _active.get(), _known.changes


def choose(
    problem: Problem,
    by_shape: Choice,
    candidates: Callable[[], Sequence[Choice]],
    prepared: Callable[[Choice], Launch],
) -> Choice:
    """The choice for a problem on the current GPU: a measured one, or that by shape.

    Parameters
    ----------
    problem : mapping, ready for JSON
        All that the time depends on; "kernel" is the stem of the .cu file.
    by_shape : dict
        What is taken where nothing was measured; one of the candidates.
    candidates : function
        Makes the choices that give the same result up to rounding.
    prepared : function of a choice
        Makes what that choice needs, and returns what launches it; it may be launched often.
    """
    if not (_active.get() or _entries()):
        return by_shape
    key, facts = _identity(problem)
    entry = _entries().get(key)
    if entry is None:
        if not _active.get() or active_recorder() is not None or active_capture() is not None:
            return by_shape
        entry = _remember(key, facts | _measured(candidates(), prepared))
    found: Choice = entry["choice"]
    if key not in _known.checked:  # whoever wrote the file, nothing but a candidate is launched
        if found not in candidates():
            return by_shape
        _known.checked.add(key)
    return found


def _identity(problem: Problem) -> tuple[str, dict[str, Any]]:
    """The key of an entry, and the part of it that says what it is about."""
    facts = {
        "problem": dict(problem),
        "gpu": gpu_name(cupy().cuda.Device().id),
        "kernels": _digest(problem["kernel"]),
    }
    return _key(facts), facts


def _key(entry: Mapping[str, Any]) -> str:
    import json  # here, as below: what tunes nothing loads none of it

    return json.dumps([entry[name] for name in ("problem", "gpu", "kernels")], sort_keys=True)


@cache
def gpu_name(number: int) -> str:
    """The name of a GPU, as its driver tells it."""
    name = cupy().cuda.runtime.getDeviceProperties(number)["name"]
    return name.decode() if isinstance(name, bytes) else str(name)


@cache
def _digest(stem: str) -> str:
    return Source.read(KERNELS / f"{stem}.cu").digest[:16]


# ---- measuring


def _measured(candidates: Sequence[Choice], prepared: Callable[[Choice], Launch]) -> dict[str, Any]:
    """The fastest candidate, and the median time of each; of equal ones the first."""
    import statistics

    timers = [timer(prepared(candidate)) for candidate in candidates]
    rounds = [[seconds() for seconds in timers] for _ in range(ROUNDS)]
    medians = [statistics.median(times) for times in zip(*rounds, strict=True)]
    return {
        "choice": candidates[medians.index(min(medians))],
        "microseconds": [
            {**candidate, "median": round(median * 1e6, 3)}
            for candidate, median in zip(candidates, medians, strict=True)
        ],
    }


def timer(launch: Launch) -> Callable[[], float]:
    """What launches a candidate on the GPU, waits for it, and returns the seconds of one launch."""
    cuda = cupy().cuda
    launch()  # compiles, and makes what is made once
    stream = cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        try:
            for _ in range(REPEATS):
                launch()
        finally:
            graph = stream.end_capture()

    def seconds() -> float:
        first, last = cuda.Event(), cuda.Event()
        first.record()
        graph.launch()
        last.record()
        last.synchronize()
        return float(cuda.get_elapsed_time(first, last)) / 1e3 / REPEATS

    return seconds


# ---- the file


def _path() -> Path:
    from tinygraph.build_cache import folder  # heavy: not before a file is wanted

    return folder() / FILE


def _entries() -> dict[str, dict[str, Any]]:
    """The entries of the file as this process read them, and those that it added."""
    if _known.entries is None:
        _known.entries = _load(_path())
    return _known.entries


def _load(path: Path) -> dict[str, dict[str, Any]]:
    """The entries by their keys; none, with a warning, if the file is not what it should be."""
    import json

    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        return _ignored(path, f"{type(error).__name__}: {error}")
    if not isinstance(content, dict) or content.get("version") != VERSION:
        return _ignored(path, f"not of version {VERSION}")
    entries = content.get("choices")
    if not isinstance(entries, list) or not all(map(_is_entry, entries)):
        return _ignored(path, "not a list of choices")
    return {_key(entry): entry for entry in entries}


def _is_entry(entry: Any) -> bool:
    """Whether an entry has all its parts, and a choice of whole numbers."""
    if not isinstance(entry, dict) or not isinstance(entry.get("problem"), dict):
        return False
    choice = entry.get("choice")
    return (
        all(isinstance(entry.get(name), str) for name in ("gpu", "kernels"))
        and isinstance(choice, dict)
        and all(type(number) is int for number in choice.values())
    )


def _ignored(path: Path, why: str) -> dict[str, dict[str, Any]]:
    warnings.warn(
        f"tuning: {path} is ignored: {why}. Shapes choose how products are computed. Way out: "
        "tg.cuda.forget_tuning(), then measure again",
        RuntimeWarning,
        stacklevel=2,
    )
    return {}


def _remember(key: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Add an entry to the file; where another process was first, take its entry."""
    import json

    path = _path()
    with _locked(path):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said when it was read first
            entries = _load(path)
        if key not in entries:
            entries[key] = entry
            content = {"version": VERSION, "choices": list(entries.values())}
            replace_file(path, (json.dumps(content, indent=1) + "\n").encode())
    _entries()[key] = entries[key]
    _known.changes += 1
    return entries[key]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock against other processes that change the file; its own file stays for good."""
    descriptor = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
