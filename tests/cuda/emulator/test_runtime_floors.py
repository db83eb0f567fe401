"""The C files of the run time stand on floors: each calls those above it in runtime.h's list."""

import re
import subprocess

import pytest
from elftools.elf.elffile import ELFFile

from tinygraph.cuda.emulator.compiler import RUNTIME, find_compiler

LISTED = re.findall(r"^ \*     (\w+\.c) ", (RUNTIME / "runtime.h").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """For each file, the other files whose functions or variables it names."""
    folder = tmp_path_factory.mktemp("objects")
    defined, wanted = {}, {}
    for path in RUNTIME.glob("*.c"):
        target = folder / f"{path.stem}.o"
        command = [*find_compiler().command, "-std=gnu11", "-fPIC", "-x", "c", "-c"]
        subprocess.run([*command, str(path), "-o", str(target)], check=True, timeout=120)
        with target.open("rb") as file:
            symbols = [*ELFFile(file).get_section_by_name(".symtab").iter_symbols()]
        public = [s for s in symbols if s["st_info"]["bind"] == "STB_GLOBAL"]
        wanted[path.name] = {s.name for s in public if s["st_shndx"] == "SHN_UNDEF"}
        defined |= {s.name: path.name for s in public if s["st_shndx"] != "SHN_UNDEF"}
    return {name: {defined[w] for w in names if w in defined} for name, names in wanted.items()}


@pytest.mark.second
def test_every_file_is_listed(calls):
    assert sorted(LISTED) == sorted(calls)


@pytest.mark.second
def test_each_file_calls_only_those_above_it(calls):
    assert calls["block.c"] >= {"schedule.c", "warp.c", "fiber.c"}  # the test sees calls at all
    for number, name in enumerate(LISTED):
        assert calls[name] <= set(LISTED[:number]), f"{name} calls {calls[name]}"
