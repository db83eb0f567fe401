"""What was handed in: a folder or a zip archive for each learner, with files such as 08_pool.py."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from tinygraph.base.errors import ArgumentError
from tinygraph.base.frozen import frozen
from tinygraph_course.content.exercise import Exercise

LARGEST = 1 << 20  # bytes of a file; those of the course have some thousands
_OTHERS = {".7z", ".rar", ".tar", ".gz", ".tgz", ".bz2", ".xz"}
_MOST = 10_000  # entries of an archive that are looked at


@frozen
class Submission:
    """What one learner has handed in.

    Attributes
    ----------
    name : str
        Of the folder or the archive.
    files : dict from str to bytes
        By name, those that belong to an exercise.
    problem : str
        Why nothing could be read; empty where something could.
    problems : dict from str to str
        By the name of a file, why it is not graded.
    """

    name: str
    files: dict[str, bytes]
    problem: str
    problems: dict[str, str]

    def has(self, exercise: Exercise) -> bool:
        """Whether a file of the exercise was handed in, be it one that cannot be graded."""
        return bool({*self.files, *self.problems} & set(files_of(exercise)))


def files_of(exercise: Exercise) -> list[str]:
    """The names of the files that a learner hands in for an exercise."""
    return [exercise.file]


def submissions(
    folders: Sequence[Path],
    exercises: Sequence[Exercise],
    besides: Sequence[Path] = (),
    alone: bool = False,
) -> list[Submission]:
    """What lies in some folders: each is a submission, or holds a folder or archive for each.

    Parameters
    ----------
    folders : sequence of Path
        A folder with files of the course itself is one submission; so is a zip archive.
    exercises : sequence of Exercise
    besides : sequence of Path
        Folders that are none.
    alone : bool
        Each folder is one submission, whatever lies in it.

    Raises
    ------
    ArgumentError
        A folder that is absent; two submissions of one name; nothing at all.
    """
    names = {name for exercise in exercises for name in files_of(exercise)}
    found: list[Submission] = []
    for folder in folders:
        if folder.is_file() and folder.suffix.lower() == ".zip":
            found.append(_of_archive(folder, names))
        elif not folder.is_dir():
            expected = "a folder, or a zip archive"
            raise ArgumentError("course grade", "FOLDER", expected, f"{folder}")
        elif alone or any((folder / name).exists() for name in names):
            found.append(_of_folder(folder, names))
        else:
            found += _inside(folder, names, {place.resolve() for place in besides})
    if not found:
        expected = f"files such as {min(names, default='08_pool.py')}, or folders with them"
        raise ArgumentError("course grade", "FOLDER", expected, "none")
    counted: dict[str, int] = {}
    for one in found:
        counted[one.name] = counted.get(one.name, 0) + 1
    if twice := [name for name, count in counted.items() if count > 1]:
        way_out = "grade them one by one, or rename the folder"
        expected = "names that differ"
        raise ArgumentError("course grade", "FOLDER", expected, f"{twice[0]} twice", way_out)
    return found


def _inside(folder: Path, names: set[str], besides: set[Path]) -> Iterator[Submission]:
    for place in sorted(folder.iterdir()):
        if place.name.startswith(".") or place.resolve() in besides or place.is_symlink():
            continue
        if place.is_dir():
            yield _of_folder(place, names)
        elif place.suffix.lower() == ".zip":
            yield _of_archive(place, names)
        elif place.suffix.lower() in _OTHERS:
            why = f"a {place.suffix} archive is not read: hand in a .zip, or the files"
            yield Submission(place.stem, {}, why, {})


def _of_folder(folder: Path, names: set[str]) -> Submission:
    """The files by their names, at whatever depth; no links, which may lead out of the folder."""
    files, problems = dict[str, bytes](), dict[str, str]()
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.name not in names or any(part.startswith((".", "__")) for part in inside.parts):
            continue
        links = [folder.joinpath(*inside.parts[: i + 1]) for i in range(len(inside.parts))]
        if any(link.is_symlink() for link in links):
            problems[path.name] = "is a link, not a file"
        elif not path.is_file():
            problems[path.name] = "is no file"
        elif path.stat().st_size > LARGEST:
            problems[path.name] = f"has more than {LARGEST:,} bytes"
        elif path.name in files:
            problems[path.name] = "is there twice: which one counts?"
        else:
            try:
                files[path.name] = path.read_bytes()
            except OSError as error:
                problems[path.name] = f"cannot be read: {error.strerror}"
    empty = not any(path.is_file() for path in folder.rglob("*"))
    return _made(folder.name or folder.resolve().name, files, problems, empty)


def _of_archive(path: Path, names: set[str]) -> Submission:
    """The same of an archive; nothing of it is written to the disk."""
    files, problems = dict[str, bytes](), dict[str, str]()
    try:
        with zipfile.ZipFile(path) as archive:
            empty = all(entry.is_dir() for entry in archive.infolist())
            for entry in archive.infolist()[:_MOST]:
                place = PurePosixPath(entry.filename.replace("\\", "/"))  # made on Windows
                if place.name not in names or "__MACOSX" in place.parts or entry.is_dir():
                    continue
                if entry.file_size > LARGEST:
                    problems[place.name] = f"has more than {LARGEST:,} bytes"
                elif entry.compress_size > path.stat().st_size:
                    problems[place.name] = "is damaged: it would be longer than its archive"
                elif place.name in files:
                    problems[place.name] = "is there twice: which one counts?"
                else:
                    with archive.open(entry) as file:
                        files[place.name] = file.read(LARGEST + 1)
    except (zipfile.BadZipFile, OSError, EOFError, RuntimeError, NotImplementedError) as error:
        return Submission(path.stem, {}, f"the archive cannot be read: {error}", {})
    except Exception as error:  # zlib and others have errors of their own
        return Submission(path.stem, {}, f"the archive cannot be read: {error!r}", {})
    return _made(path.stem, files, problems, empty)


def _made(name: str, files: dict[str, bytes], problems: dict[str, str], empty: bool) -> Submission:
    good = {file: content for file, content in files.items() if file not in problems}
    missing = "" if files or problems else "no file of the course is in it"
    missing += ": it is empty" if empty else ""
    return Submission(name, good, missing, problems)
