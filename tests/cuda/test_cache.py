"""One cache for all processes: built once, whole or not there."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

from tinygraph.base import build_cache as cache
from tinygraph.base.build_cache import compiled, folder, key

# Neither fork, which a process with threads must not use, nor spawn, which imports all anew.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([__name__])


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TINYGRAPH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def writer(text):
    return lambda path: path.write_text(text) and None


def names(cache_folder):
    """What lies there, but for the sums of files."""
    return [p.name for p in cache_folder.iterdir() if p.suffix != ".sha256"]


def never(path):
    raise AssertionError("built a second time")


def test_a_file_is_built_once_and_found_again(own_folder):
    path = compiled(["a", "b"], ".so", writer("made"))
    assert path.read_text() == "made" and path.parent == own_folder
    assert path.name == f"{key(['a', 'b'])}.so"
    assert compiled(["a", "b"], ".so", never) == path
    assert names(own_folder) == [path.name]  # no lock, no temporary file


def test_other_parts_or_another_suffix_are_another_file():
    paths = {
        compiled(parts, suffix, writer("x"))
        for parts in (["ab"], ["a", "b"], ["b", "a"], ["a", "b", ""], [])
        for suffix in (".so", ".cubin")
    }
    assert len(paths) == 10


def test_what_was_built_beside_the_file_is_renamed_and_not_copied(own_folder):
    seen = []

    def build(path):
        path.write_text("x")
        seen.append((path, path.stat().st_ino))

    result = compiled(["a"], ".so", build)
    ((path, number),) = seen
    assert path != result and path.suffix == ".so" and path.parent == own_folder
    assert result.stat().st_ino == number


def test_a_builder_that_fails_leaves_nothing_and_can_be_repeated(own_folder):
    def fail(path):
        path.write_text("half")
        raise RuntimeError("no compiler")

    with pytest.raises(RuntimeError, match="no compiler"):
        compiled(["a"], ".so", fail)
    assert not [p for p in own_folder.iterdir() if p.suffix == ".so"]
    assert compiled(["a"], ".so", writer("whole")).read_text() == "whole"


def _count_builds(cache_folder, log, start, found):
    os.environ["TINYGRAPH_CACHE"] = str(cache_folder)

    def build(path):
        with open(log, "a") as file:
            file.write(f"{os.getpid()}\n")
        path.write_text("half")
        time.sleep(0.3)  # the others arrive while it is being built
        path.write_text("half and half")

    start.wait()
    found.put(compiled(["shared"], ".so", build).read_text())


@pytest.mark.second
def test_eight_processes_build_once(tmp_path, own_folder):
    log = tmp_path / "log"
    start, found = PROCESSES.Barrier(8), PROCESSES.Queue()
    args = (own_folder, log, start, found)
    workers = [PROCESSES.Process(target=_count_builds, args=args) for _ in range(8)]
    for worker in workers:
        worker.start()
    texts = [found.get(timeout=30) for _ in workers]
    for worker in workers:
        worker.join(30)
    assert [worker.exitcode for worker in workers] == [0] * 8
    assert texts == ["half and half"] * 8
    assert len(log.read_text().splitlines()) == 1


def test_threads_of_one_process_build_once():
    built, paths = [], []

    def build(path):
        built.append(path)
        time.sleep(0.1)
        path.write_text("x")

    threads = [
        threading.Thread(target=lambda: paths.append(compiled(["a"], ".so", build)))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(built) == 1 and len(set(paths)) == 1 and len(paths) == 6


def _hang(cache_folder, started):
    os.environ["TINYGRAPH_CACHE"] = str(cache_folder)

    def build(path):
        path.write_text("half")
        started.set()
        time.sleep(60)

    compiled(["a"], ".so", build)


def test_a_killed_builder_leaves_no_half_file(own_folder):
    started = PROCESSES.Event()
    worker = PROCESSES.Process(target=_hang, args=(own_folder, started))
    worker.start()
    assert started.wait(30)
    halves = [p for p in own_folder.iterdir() if p.suffix == ".so"]
    assert [p.read_text() for p in halves] == ["half"]  # it is there, under another name

    waiting = []
    other = threading.Thread(target=lambda: waiting.append(compiled(["a"], ".so", writer("whole"))))
    other.start()
    other.join(0.2)
    assert other.is_alive()  # it waits for the lock
    os.kill(worker.pid, signal.SIGKILL)
    worker.join(30)
    other.join(30)
    assert waiting[0].read_text() == "whole"
    assert names(own_folder) == [waiting[0].name]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"TINYGRAPH_CACHE": "{tmp}/own", "XDG_CACHE_HOME": "{tmp}/xdg"}, "own"),
        ({"XDG_CACHE_HOME": "{tmp}/xdg"}, "xdg/tinygraph"),
        ({}, "home/.cache/tinygraph"),
        ({"TINYGRAPH_CACHE": "", "XDG_CACHE_HOME": ""}, "home/.cache/tinygraph"),
    ],
)
def test_where_the_cache_lies(tmp_path, monkeypatch, environment, expected):
    monkeypatch.delenv("TINYGRAPH_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name, value in environment.items():
        monkeypatch.setenv(name, value.format(tmp=tmp_path))
    assert folder() == tmp_path / expected and folder().is_dir()


def test_a_folder_that_cannot_be_written_gives_way_to_a_private_one(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    cache.private_folder.cache_clear()
    monkeypatch.setenv("TINYGRAPH_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        path = compiled(["a"], ".so", writer("x"))
    assert path.parent.stat().st_mode & 0o77 == 0  # nobody else may write what we load
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(["a"], ".so", never) == path

    monkeypatch.delenv("TINYGRAPH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nobody asked for that folder: no warning
        assert folder().is_dir() and tmp_path not in folder().parents


def test_the_private_folder_goes_with_its_process(tmp_path, monkeypatch):
    monkeypatch.delenv("TINYGRAPH_CACHE")
    (tmp_path / "file").write_text("")
    text = "from tinygraph import build_cache as cache; print(cache.folder())"
    out = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "file"), "TMPDIR": str(tmp_path)},
    )
    path = Path(out.stdout.strip())
    assert path.parent == tmp_path and not path.exists()
