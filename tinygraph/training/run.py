"""RunFolder: everything that one training leaves behind, in one folder.

config.json             the recipe and its settings
environment.json        versions, machine, threads, seeds, command line, date
log.jsonl               one line of JSON for each epoch
parameters.safetensors  the parameters after the last whole epoch, sealed (sealed.py)
best/                   the same after the epoch that was best on the validation data
checkpoints/            what a stopped training goes on from (checkpoints.py)
backups/                dated copies of the parameters
result.json             the metrics on the test data, once there are any
tuning.json             tiles and threads of a compiled training, where they were tuned

Of the ranks of a launch only the first one touches the folder.  All of them call the same methods:
what is read is told to the others, and so is a failure.

One process at a time writes (run_lock.py): a new folder is its maker's until its training ends, an
old one is his who resumes it.  Whoever only reads may do so at any time.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

from tinygraph.base import AnyPath, ArgumentError, CheckpointError, as_path
from tinygraph.base.disk import OwnPath, open_to_append, real_folder
from tinygraph.base.json_files import parse, read_text
from tinygraph.base.json_text import from_json, to_json
from tinygraph.base.paths import typed
from tinygraph.distributed import from_first, launched_by, leads
from tinygraph.engine import Array
from tinygraph.files.sealed import load_arrays, reason, save_arrays, write_atomically, writing
from tinygraph.training.environment import environment
from tinygraph.training.run_lock import NAME as LOCK
from tinygraph.training.run_lock import RunLock

_METRIC = re.compile(r"(\w+_)?(loss|accuracy|seconds)")  # names that are those of numbers in a log
FOLDERS = ("best", "backups", "checkpoints", "tensorboard")  # no links


class RunFolder:
    """A new folder for a run.  `RunFolder.open` takes up an old one.

    Parameters
    ----------
    path : str or os.PathLike
        Made with its parents.  It may exist if it is empty: a run is never written over.

    Raises
    ------
    ArgumentError
        There is something at that path, or another process is about to train there.
    CheckpointError
        The folder cannot be made.

    Examples
    --------
    >>> import tempfile, tinygraph as tg
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = tg.training.RunFolder(f"{folder}/first")
    ...     _ = run.write_config({"recipe": "numba_cnn"})
    ...     tg.training.RunFolder.open(f"{folder}/first").config
    {'recipe': 'numba_cnn'}
    """

    def __init__(self, path: AnyPath) -> None:
        self.path = OwnPath(as_path("run folder", "path", path))
        self.config: dict[str, Any] = {}
        self.opened = False
        self._lock = RunLock(self.path)
        from_first(self._make)

    def _make(self) -> None:
        with writing(self.path):
            with suppress(FileExistsError):
                self.path.mkdir(parents=True)
            self._require_empty()
            self._lock.take()  # of two that find the folder empty, one gets it
            try:
                self._require_empty()
                probe = self.path / ".probe"  # better told now than after the first epoch
                probe.touch(exist_ok=False)
                probe.unlink()
            except BaseException:
                self._lock.release()
                raise

    def _require_empty(self) -> None:
        is_folder = self.path.is_dir()
        if not is_folder or any(entry.name != LOCK for entry in self.path.iterdir()):
            raise ArgumentError(
                "run folder",
                str(self.path),
                "a new or an empty folder",
                "a folder with files in it" if is_folder else "a file",
                "name another one; a run is never written over",
            )

    @classmethod
    def new(cls, recipe: str, root: AnyPath = "runs") -> RunFolder:
        """A folder ROOT/RECIPE-DATE-TIME, with a counter behind it where that one is taken."""

        def make() -> str:
            stem = f"{recipe}-{datetime.now():%Y%m%d-%H%M%S}"
            path = OwnPath(as_path("run folder", "root", root)) / stem
            with writing(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                for count in range(2, 1000):
                    try:
                        path.mkdir()  # of two runs that start at once, one gets it
                        break
                    except FileExistsError:
                        path = path.with_name(f"{stem}-{count}")
            return str(path)

        return cls(from_first(make))

    @classmethod
    def open(cls, path: AnyPath) -> RunFolder:
        """The folder of an earlier run.

        Raises
        ------
        CheckpointError
            There is no such folder, it holds no readable config.json, or one of its folders is a
            link, which would lead what is written elsewhere.
        """
        run = cls.__new__(cls)
        run.opened = True
        run.path = OwnPath(as_path("run folder", "path", path))
        run._lock = RunLock(run.path)
        if not from_first(run.path.is_dir):
            raise CheckpointError(
                "run folder",
                str(run.path),
                "the folder of a run",
                "a file" if from_first(run.path.exists) else "no such folder",
                "name a folder that `tinygraph train` wrote",
            )
        from_first(run._refuse_links)
        run.config = run._read_json("config.json")
        for name in ("recipe", "file", "data_dir"):
            if not isinstance(value := run.config.get(name), str | None):
                place = str(run.path / "config.json")
                raise CheckpointError("run folder", place, f"{name}: a text", f"{value!r:.60}")
        return run

    def _refuse_links(self) -> None:
        """A run may come from a stranger: what is written into it does not go elsewhere."""
        for name in FOLDERS:
            with writing(self.path / name):
                if (self.path / name).is_symlink():
                    real_folder(self.path / name)

    @property
    def best(self) -> Path:
        """The file of the best parameters."""
        return self.path / "best" / "parameters.safetensors"

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints."""
        return self.path / "checkpoints"

    @property
    def resume_command(self) -> str:
        """What goes on with this run; the recipe of a file has to be named."""
        file = self.config.get("file")
        recipe = f"{typed(file)} " if file else ""
        return f"{launched_by()}tinygraph train {recipe}--resume={typed(self.path)}"

    @property
    def epochs_done(self) -> int:
        """The last epoch that the log has a row of; 0 before the first."""
        rows = self.rows() if self._has("log.jsonl") else []
        return int(rows[-1].get("epoch", len(rows))) if rows else 0

    @property
    def epochs_asked(self) -> int | None:
        """How many epochs the settings ask for; None where it is a duration."""
        settings = self.config.get("settings")
        asked = settings.get("epochs") if isinstance(settings, dict) else None
        return asked if isinstance(asked, int) else None

    @property
    def finished(self) -> bool:
        """Whether the training came to its end: then there is a result.json."""
        return self._has("result.json")

    def files(self) -> list[Path]:
        """What a user may want to look at: every file but the checkpoints."""
        whole = (path for path in self.path.rglob("*") if path.is_file() and path.name != LOCK)
        return sorted(path for path in whole if self.checkpoints not in path.parents)

    # ---- one process at a time --------------------------------------------------------------

    @contextmanager
    def alone(self, keep: bool = False) -> Iterator[None]:
        """Keep other processes from training here, for a block of code.

        The outermost block ends that; with `keep` the next one, where this one does not fail.

        Raises
        ------
        ArgumentError
            Another process trains here: the message names it.
        """
        from_first(self._lock.take)
        with self._lock.alone(keep) if leads() else nullcontext():
            yield

    @contextmanager
    def training(self) -> Iterator[None]:
        """The same for a training: other threads are refused too."""
        from_first(self._lock.take)
        with self._lock.training() if leads() else nullcontext():
            yield

    def remove_if_empty(self) -> None:
        """Let the folder go again where nothing came of a training."""
        if leads():
            self._lock.release()
            with suppress(OSError):
                self.path.rmdir()  # goes only while it is empty

    # ---- writing ----------------------------------------------------------------------------

    def write_config(self, config: Mapping[str, Any]) -> Path:
        """Write config.json, as every file of JSON, by the rules of `tinygraph.base.json_text`.

        Numbers of numpy and tensors of one element stay numbers, arrays become lists.  What has no
        place in JSON is an ArgumentError that says where it stands, and the old file stays.
        """
        path = self._write_json("config.json", config)
        self.config = dict(config)
        return path

    def lengthen(self, settings: Mapping[str, Any]) -> None:
        """Take settings that ask for more: what the run came to is no longer its result."""
        self.write_config({**self.config, "settings": dict(settings)})
        path = self.path / "result.json"
        if leads():
            with writing(path), self._lock.briefly():
                path.unlink(missing_ok=True)

    def write_environment(self, **facts: Any) -> Path:
        """Write environment.json: what `environment()` finds, and further facts such as seeds.

        A resumed run adds an entry to "resumed", and warns where something differs on which the
        bits of a result may depend.
        """
        now = {**environment(), **facts}
        if self.opened and self._has("environment.json"):
            first = self.environment()
            now, new = first, now
            now.setdefault("resumed", []).append(new)
            names = ("python", "numpy", "tinygraph", "machine", "blas", "threads")
            changed = [name for name in names if new.get(name) != first.get(name)]
            if changed:
                text = f"{', '.join(changed)} changed since the run began: its bits may change too"
                warnings.warn(text, stacklevel=2)
        return self._write_json("environment.json", now)

    def write_result(self, result: Mapping[str, Any]) -> Path:
        """Write result.json."""
        return self._write_json("result.json", dict(result))

    def write_tuning(self, choices: Sequence[Mapping[str, Any]]) -> Path:
        """Replace tuning.json: the choices of a tuned training."""
        return self._write_json("tuning.json", {"choices": list(choices)})

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a line to log.jsonl; a number that is not finite becomes null, as JSON has none."""
        if not leads():
            return
        path = self.path / "log.jsonl"
        line = to_json(str(path), row, gaps=True)
        with writing(path), self._lock.briefly(), open_to_append(path) as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())

    def save_parameters(self, arrays: Mapping[str, Any]) -> Path:
        """Replace parameters.safetensors, in one step."""
        return self._save(self.path / "parameters.safetensors", arrays)

    def save_best(self, arrays: Mapping[str, Any]) -> Path:
        """Replace the best parameters, in one step."""
        return self._save(self.best, arrays)

    def back_up(self, arrays: Mapping[str, Any]) -> Path:
        """Keep parameters among the `backups`, with date and time for a name."""
        stem = f"parameters-{datetime.now():%Y%m%d-%H%M%S}"
        path = self.path / "backups" / f"{stem}.safetensors"
        for counter in count(2):
            if not path.exists():
                break
            path = path.with_name(f"{stem}-{counter}.safetensors")
        return self._save(path, arrays)

    def _save(self, path: Path, arrays: Mapping[str, Any]) -> Path:
        if not leads():
            return path
        with self._lock.briefly():
            if path.parent != self.path:
                with writing(path):
                    real_folder(path.parent)
            return save_arrays(path, arrays)

    def _write_json(self, name: str, content: Any) -> Path:
        path = self.path / name
        text = to_json(str(path), content, indent=2, ensure_ascii=False)  # refused on all ranks
        if leads():
            with self._lock.briefly():
                write_atomically(path, f"{text}\n".encode())
        return path

    # ---- reading ----------------------------------------------------------------------------

    def keep_rows(self, number: int) -> None:
        """Leave only the first rows of the log, in one step: those before a resume."""
        path = self.path / "log.jsonl"
        if leads() and path.exists():
            with self._lock.briefly():
                lines = _text(path).split("\n")[:-1]  # a whole line ends in a newline
                write_atomically(path, "".join(f"{line}\n" for line in lines[:number]).encode())

    def load_parameters(self, best: bool = False) -> dict[str, Array]:
        """The saved parameters by name; CheckpointError where the file is absent or damaged.

        A file that another program wrote in its place has no seal, and is read as it is.
        """
        path = self.best if best else self.path / "parameters.safetensors"
        return load_arrays(path, sealed=None)

    def environment(self) -> dict[str, Any]:
        """What environment.json says."""
        found = self._read_json("environment.json")
        again = found.get("resumed", [])
        if not isinstance(again, list) or not all(isinstance(each, dict) for each in again):
            place = str(self.path / "environment.json")
            raise CheckpointError(
                "run folder", place, "resumed: a list of objects", f"{again!r:.60}"
            )
        return found

    def result(self) -> dict[str, Any]:
        """What result.json says; nothing before there is one."""
        return self._read_json("result.json") if self._has("result.json") else {}

    def tuning(self) -> Any:
        """The choices in tuning.json; none before there are any."""
        found = self._read_json("tuning.json") if self._has("tuning.json") else {}
        return found.get("choices", [])

    def rows(self) -> list[dict[str, Any]]:
        """The log, one dict for each epoch.  A last line that a crash cut off is left out."""
        path = self.path / "log.jsonl"
        lines = self._read(path).split("\n")
        # A whole line ends in a newline.
        return [_row(path, number, line) for number, line in enumerate(lines[:-1], 1)]

    def _read_json(self, name: str) -> dict[str, Any]:
        path = self.path / name
        try:
            content = from_json(self._read(path))
        except ValueError as error:
            raise CheckpointError("run folder", str(path), "JSON", error) from None
        if not isinstance(content, dict):
            raise CheckpointError("run folder", str(path), "a JSON object", type(content).__name__)
        return content

    def _has(self, name: str) -> bool:
        return bool(from_first((self.path / name).exists))

    def _read(self, path: Path) -> str:
        return str(from_first(lambda: _text(path)))


def _row(path: Path, number: int, line: str) -> dict[str, Any]:
    """A line of the log; null stands for a metric that was not finite."""
    expected, got = "one JSON object on each line", ""
    try:
        row = parse(line)
        epoch = row.get("epoch", 1) if isinstance(row, dict) else 1
        if not isinstance(row, dict):
            got = type(row).__name__
        elif isinstance(epoch, bool) or not isinstance(epoch, int) or not 0 <= epoch < 2**63:
            expected, got = "epoch: a whole number", f"{epoch!r:.60}"
        else:
            for name, value in row.items():
                large = isinstance(value, int) and abs(value) >= 10**308
                if large or (_METRIC.fullmatch(name) and not _is_metric(value)):
                    expected, got = f"{name}: a number or null", f"{value!r:.60}"
        if not got:
            return row
    except ValueError as error:
        got = str(error)
    raise CheckpointError("run folder", f"{path}, line {number}", expected, got)


def _is_metric(value: Any) -> bool:
    """Whether a log may hold a metric: a number, or null for one that was not finite."""
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _text(path: Path) -> str:
    try:
        return read_text(path)
    except (OSError, ValueError) as error:
        got = reason(error) if isinstance(error, OSError) else str(error)
        raise CheckpointError(
            "run folder",
            str(path),
            "a file that a run wrote",
            got,
            "name a folder that `tinygraph train` wrote",
        ) from None
