"""The ledger of mutants: how each ended, so that it is tried again only where that may change.

tests/cuda/ledger/FILE.txt says of each mutant of a kernel file, and of the file as it stands,

    DIGEST OUTCOME NAME

DIGEST is of what the outcome follows from, as far as it is this mutant's own: its text and that of
all headers that are compiled with it, without comments, and what is changed; and the Python that
launches it, as far as that is written for this file (launches_*.py, or tests/ops/test_FILE.py, and
the page beside it).  An entry whose digest is no mutant's counts as none: who changes a kernel need
not touch the ledger, its mutants are then tried at each run, up to a number, and the closing lines
say how many wait.

What all mutants share, the emulator and the compiler, stands in the first line of each file.  A
change of it does not empty the ledger: the emulator has tests of its own, and tests in minutes
would end with each commit to it.  `make test` then tries a larger sample of the entries, and says
so.  `make test-all` tries one in 16 of those that these very tools have not tried, and one in 32 of
the others: an entry that is wrong, for whatever reason, fails there.  `make test-nightly` tries all
that other tools have tried.

    make ledger              try what has no entry, or all of a file that other tools have tried
    make ledger ARGS=--all   try every mutant
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.cuda import launches, mutation_run
from tests.cuda.mutants import Mutant
from tests.cuda.mutation_run import PREFERRED, Sandbox, included_by, to_try
from tinygraph.cuda import emulator
from tinygraph.cuda.emulator.compiler import find_compiler
from tinygraph.cuda.reading.source import kernel_file
from tinygraph.cuda.reading.tokens import without_comments

LEDGER = Path(__file__).parent / "ledger"
ROOT = Path(__file__).parents[2]
# `make test` tries at most so many mutants that have no entry, and so many of those that have one:
# the second number where the emulator or the compiler is another one.
MOST_NEW, SAMPLE, SAMPLE_OF_OTHER_TOOLS = 60, 2, 8
# `make test-all` tries one of so many that have an entry by the same emulator and compiler.
ONE_OF = 32
# What makes mutants, and makes and judges the launches of all files.
COMMON = ("contract_work.py", "launch.py", "mutants.py", "mutation_run.py", "recorded.py")


# ---- what an outcome follows from


def _digest(parts: Iterable[str]) -> str:
    sha = hashlib.sha256()
    for part in parts:
        sha.update(part.encode())
        sha.update(b"\0")
    return sha.hexdigest()[:16]


def code(path: Path) -> str:
    """The text of a source without comments and layout; of Python, without comments and imports.

    Where a module lies says nothing of what it does.
    """
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return compact(text)
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
    left = "\n".join(line for line in lines if line.lstrip(" ")[:1] not in ("", "#"))
    return re.sub(r"\btinygraph(\.\w+)+\.(\w+)", r"\2", left)


def compact(text: str) -> str:
    """A source in C without comments and layout."""
    lines = (" ".join(line.split()) for line in without_comments(text).splitlines())
    # a directive is a line of its own
    return " ".join(f"\n{line}\n" if line.startswith("#") else line for line in lines if line)


@cache
def tools() -> str:
    """The emulator, what tries mutants under it, and the version of the compiler."""
    folder = Path(emulator.__path__[0])
    sources = [p for p in sorted(folder.rglob("*")) if p.suffix in (".py", ".c", ".h")]
    compiler = find_compiler()
    version = compiler.run("-dumpfullversion", "-dumpversion").stdout.strip()
    here = [Path(__file__).parent / name for name in COMMON]
    return f"emulator {_digest(map(code, sources + here))} {compiler.family} {version}"


@cache
def _kernel(path: Path) -> str:
    return compact(path.read_text())


@cache
def _launching(file: str) -> str:
    """The Python that makes the launches of a .cu file, and of no other."""
    stem = Path(file).stem
    made = launches.written_in().get(file, ROOT / f"tests/ops/test_{stem}.py")
    return _digest(code(p) for p in (made, kernel_file(file).with_suffix(".py")) if p.exists())


@cache
def _surroundings(file: str) -> str:
    """All but the text of a file itself that the outcomes of its mutants follow from."""
    through = PREFERRED.get(file) or sorted(
        f for f in launches.families() if file in included_by(f)
    )
    compiled = sorted({name for cu in through for name in included_by(cu)} - {file})
    texts = [part for name in compiled for part in (name, _kernel(kernel_file(name)))]
    return _digest([*through, *texts, *map(_launching, through)])


@cache
def digest(mutant: Mutant) -> str:
    """A digest of all that the outcome of a mutant follows from, but for the tools."""
    text = _kernel(kernel_file(mutant.file))
    return _digest([mutant.name, mutant.change, text, _surroundings(mutant.file)])


# ---- entries


@dataclass(frozen=True)
class Page:
    """The outcomes of the mutants of one kernel file, by digest, and the tools that tried them."""

    tools: str
    outcomes: dict[str, str]


def read(file: str, folder: Path = LEDGER) -> Page:
    """The page of a kernel file; an empty one where there is none."""
    path = folder / f"{file}.txt"
    if not path.exists():
        return Page("", {})
    first, *lines = path.read_text().splitlines()
    return Page(first, {words[0]: words[1] for words in map(str.split, lines) if len(words) == 3})


def write(file: str, outcomes: dict[Mutant, str], folder: Path = LEDGER) -> None:
    """Write the page of a kernel file, sorted, so that changes of two people meet in few lines."""
    lines = sorted(f"{digest(m)} {how} {m.name}" for m, how in outcomes.items())
    folder.mkdir(exist_ok=True)
    (folder / f"{file}.txt").write_text("\n".join([tools(), *lines]) + "\n")


@dataclass(frozen=True)
class Plan:
    """What a run of the tests makes of the mutants.

    Attributes
    ----------
    known : dict
        The outcome of each mutant that has an entry.
    now : tuple of str
        Those that are tried at each run: without an entry, and a sample of the others.
    waiting : tuple of str
        Those without an entry that are too many to be tried now.
    other_tools : tuple of str
        The kernel files whose entries another emulator or compiler has made.
    later : tuple of str
        Those that the second tier tries.
    """

    known: dict[str, str]
    now: tuple[str, ...]
    waiting: tuple[str, ...]
    other_tools: tuple[str, ...]
    later: tuple[str, ...]

    def __str__(self) -> str:
        words = f"mutants of kernels: {len(self.known)} in the ledger, {len(self.now)} tried"
        if self.waiting:
            words += f"; {len(self.waiting)} NEW ONES WAIT for `make test-all` or `make ledger`"
        if self.other_tools:
            words += (
                f"; the emulator or the compiler is another one than the ledger's for "
                f"{len(self.other_tools)} files: `make ledger` tries their mutants again"
            )
        return words


def plan(mutants: dict[str, Mutant], folder: Path = LEDGER) -> Plan:
    """Choose what is tried at each run: always the same ones, for the same tree."""
    pages = {file: read(file, folder) for file in {m.file for m in mutants.values()}}
    digests = {name: digest(mutant) for name, mutant in mutants.items()}
    known = {
        name: pages[mutant.file].outcomes[digests[name]]
        for name, mutant in mutants.items()
        if digests[name] in pages[mutant.file].outcomes
    }
    other = tuple(sorted(f for f, page in pages.items() if page.outcomes and page.tools != tools()))
    order = sorted(mutants, key=digests.__getitem__)
    new = [name for name in order if name not in known]
    # one that nobody catches goes through all launches, and one of a header through those of many
    # files: they cost most, and are left to `test-all`
    caught = [
        name
        for name in order
        if known.get(name) in ("checker", "numbers") and mutants[name].file.endswith(".cu")
    ]
    sample = caught[: SAMPLE_OF_OTHER_TOOLS if other else SAMPLE]
    now = (*new[:MOST_NEW], *sample)
    tried = [name for name in order if name in known and mutants[name].file not in other]
    trusted = {name for name in tried if int(digests[name], 16) % ONE_OF}
    # in the order of files: one process tries those of a file
    later = [name for name in mutants if name not in now and name not in trusted]
    return Plan(known, now, tuple(new[MOST_NEW:]), other, tuple(later))


# ---- make ledger


def _try(file: str, waiting: dict[str, Mutant], known: dict[Mutant, str]) -> tuple[str, float]:
    """Try the mutants of a file one after the other, and write its page."""
    sandbox, started = Sandbox(), time.monotonic()
    try:
        tried = {mutant: sandbox.run(name).how for name, mutant in waiting.items()}
    finally:
        sandbox.close()
    write(file, known | tried)
    return file, time.monotonic() - started


def _work(every: bool) -> Iterator[tuple[str, dict[str, Mutant], dict[Mutant, str]]]:
    """For each file that needs it what is to be tried, and what is known."""
    files: dict[str, dict[str, Mutant]] = {}
    for name, mutant in to_try().items():
        files.setdefault(mutant.file, {})[name] = mutant
    for file, mutants in files.items():
        page = read(file)
        outcomes = {} if every or page.tools != tools() else page.outcomes
        known = {m: outcomes[digest(m)] for m in mutants.values() if digest(m) in outcomes}
        waiting = {name: m for name, m in mutants.items() if m not in known}
        if waiting or page.outcomes.keys() != {digest(m) for m in known}:
            yield file, waiting, known
    for path in LEDGER.glob("*.txt"):
        if path.stem not in files:
            path.unlink()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="ledger", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--all", action="store_true", help="try those that have an entry as well")
    jobs = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser.add_argument("--jobs", type=int, default=jobs, metavar="N")
    given = parser.parse_args(arguments)
    # the largest first: what is tried last is short
    work = sorted(_work(given.all), key=lambda found: -_weight(found[0], found[1]))
    started = time.monotonic()
    mutation_run.prepare()
    with ThreadPoolExecutor(given.jobs) as pool:
        futures = [pool.submit(_try, *found) for found in work]
        for future, (_, waiting, _) in zip(futures, work, strict=True):
            file, seconds = future.result()
            print(f"{file:40s} {len(waiting):4d} tried {seconds:6.1f} s", flush=True)
    count = sum(len(waiting) for _, waiting, _ in work)
    print(f"{count} mutants of {len(work)} files: {time.monotonic() - started:.0f} s")
    return 0


def _weight(file: str, waiting: dict[str, Mutant]) -> float:
    return len(waiting) * (4 if file.startswith("gemm") else 1)


if __name__ == "__main__":
    sys.exit(main())
