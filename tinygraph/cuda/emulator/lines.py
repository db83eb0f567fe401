"""From a program counter to the source line, by the debug information of the kernel's library."""

from __future__ import annotations

import os
from bisect import bisect_right
from functools import cached_property, lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

_HERE = Path(__file__).resolve().parent
HEADERS = {_HERE / "include", _HERE / "host" / "include"}


def is_of_the_emulator(file: str) -> bool:
    """Whether a file is one of the emulator's headers."""
    return not HEADERS.isdisjoint(Path(file).parents)


@lru_cache(maxsize=64)
def lines_of(path: Path) -> Lines:
    """The lines of a library, which several kernels may share."""
    return Lines(path)


class Lines:
    """The line table and the inlined calls of one shared library.

    An access inside a function of the emulator's headers that was inlined (the copy of a float4)
    belongs to the line that called it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def find(self, address: int) -> tuple[str, int] | None:
        """File and line of the call that returns to `address` in the file; None if unknown.

        A program counter handed to a hook is a return address: it lies behind the call.
        """
        address -= 1
        place = self._row(address)
        if place and not self._own(place[0]):
            return place
        for low, high, call in self._inlined:
            if low <= address < high and not self._own(call[0]):
                return call
        return place

    def _own(self, file: str) -> bool:
        return is_of_the_emulator(file)

    def _row(self, address: int) -> tuple[str, int] | None:
        at = bisect_right(self._table, address, key=lambda row: row[0]) - 1
        return self._table[at][1] if at >= 0 else None

    @cached_property
    def _table(self) -> list[tuple[int, tuple[str, int] | None]]:
        """(first address, place) of every stretch of code, sorted."""
        rows: list[tuple[int, tuple[str, int] | None]] = []
        for unit in self._units:
            program = self._dwarf.line_program_for_CU(unit)
            if program is None:
                continue
            names = _file_names(unit, program)
            for entry in program.get_entries():
                state = entry.state
                if state is None:
                    continue
                if not state.line and not state.end_sequence:
                    continue  # clang: "of no line in particular"; the line before goes on
                place = None if state.end_sequence else (names.get(state.file, ""), state.line)
                rows.append((state.address, place))
        return sorted(rows, key=lambda row: row[0])

    @cached_property
    def _inlined(self) -> list[tuple[int, int, tuple[str, int]]]:
        """(low, high, place of the call) of inlined functions, the innermost first."""
        found = []
        for unit in self._units:
            program = self._dwarf.line_program_for_CU(unit)
            names = _file_names(unit, program) if program else {}
            for die in unit.iter_DIEs():
                about = die.attributes
                if die.tag != "DW_TAG_inlined_subroutine" or "DW_AT_call_line" not in about:
                    continue
                file = names.get(about["DW_AT_call_file"].value, "")
                place = (file, about["DW_AT_call_line"].value)
                found += [(low, high, place) for low, high in self._ranges(unit, die)]
        return sorted(found, key=lambda item: item[1] - item[0])

    def _ranges(self, unit: Any, die: Any) -> list[tuple[int, int]]:
        attributes = die.attributes
        if "DW_AT_low_pc" in attributes and "DW_AT_high_pc" in attributes:
            low, high = attributes["DW_AT_low_pc"].value, attributes["DW_AT_high_pc"]
            return [(low, high.value if high.form == "DW_FORM_addr" else low + high.value)]
        if "DW_AT_ranges" not in attributes:
            return []
        base = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
        start = base.value if base else 0
        lists = self._dwarf.range_lists()
        entries = lists.get_range_list_at_offset(attributes["DW_AT_ranges"].value, cu=unit)
        return [
            (start + e.begin_offset, start + e.end_offset)
            for e in entries
            if hasattr(e, "begin_offset")
        ]

    @cached_property
    def _dwarf(self) -> Any:
        return ELFFile(BytesIO(self.path.read_bytes())).get_dwarf_info()

    @cached_property
    def _units(self) -> list[Any]:
        return list(self._dwarf.iter_CUs())


def _file_names(unit: Any, program: Any) -> dict[int, str]:
    """The names of a line table by number; DWARF 4 counts from 1, DWARF 5 from 0."""
    version = program.header.version
    compiled_in = unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
    root = compiled_in.value.decode(errors="replace") if compiled_in else ""
    folders = [folder.decode(errors="replace") for folder in program.header.include_directory]
    names = {}
    for number, entry in enumerate(program.header.file_entry, start=0 if version >= 5 else 1):
        name = entry.name.decode(errors="replace")
        folder = entry.dir_index - (0 if version >= 5 else 1)
        if not name.startswith(("/", "<")) and 0 <= folder < len(folders):
            name = os.path.normpath(os.path.join(root, folders[folder], name))
        names[number] = name
    return names


def symbols(path: Path) -> list[tuple[str, int, int]]:
    """(name, address, bytes) of the variables of a library."""
    found = []
    with path.open("rb") as file:
        table: Any = ELFFile(file).get_section_by_name(".symtab")
        for symbol in table.iter_symbols() if table else ():
            if symbol["st_info"]["type"] == "STT_OBJECT" and symbol["st_size"]:
                found.append((symbol.name, symbol["st_value"], symbol["st_size"]))
    return found
