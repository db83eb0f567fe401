"""How much memory is free, by files of the system that are written here."""

import pytest

from tinygraph.base import free_memory
from tinygraph.base.free_memory import SMALL, free_bytes, too_large

MEMINFO = "MemTotal:  24684084 kB\nMemFree:  9 kB\nMemAvailable:   1000 kB\nBuffers: 3 kB\n"


@pytest.fixture
def system(tmp_path, monkeypatch):
    """A machine with 1000 KiB free, and no group; files are written into the folder."""
    (tmp_path / "meminfo").write_text(MEMINFO, encoding="ascii")
    monkeypatch.setattr(free_memory, "_MEMINFO", tmp_path / "meminfo")
    files = [(tmp_path, *names) for _, *names in free_memory._FILES_OF_GROUPS]
    monkeypatch.setattr(free_memory, "_FILES_OF_GROUPS", files)
    return tmp_path


def write(folder, **files):
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="ascii")


def test_what_the_machine_says(system):
    assert free_bytes() == 1000 * 1024
    assert too_large(SMALL) == "" and "1,024,000 are free" in too_large(SMALL + 1)


def test_what_the_container_says(system):
    write(system, memory__max="900000\n", memory__current="500000\n")
    write(system, memory__stat="anon 7\ninactive_file 100000\n")
    assert free_bytes() == 900000 - 500000 + 100000
    write(system, memory__current="2000000")
    assert free_bytes() == 0
    write(system, memory__max="max\n")
    assert free_bytes() == 1000 * 1024


def test_what_a_container_of_the_first_version_says(system):
    write(system, memory__limit_in_bytes="700000\n", memory__usage_in_bytes="300000\n")
    write(system, memory__stat="total_inactive_file 50000\n")
    assert free_bytes() == 700000 - 300000 + 50000


@pytest.mark.parametrize("text", ["", "MemAvailable:\n", "MemAvailable: many kB\n", "x"])
def test_a_system_that_says_nothing(text, system):
    write(system, meminfo=text)
    assert free_bytes() is None and too_large(2**62) == ""
    (system / "meminfo").unlink()
    assert free_bytes() is None
