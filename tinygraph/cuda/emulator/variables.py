"""What the debug information of a build without optimisation knows of variables.

Locals lie in the frame of their function, at a distance from it that DWARF tells (DW_OP_fbreg);
arrays in shared memory and `__device__` variables have their type there.

Source: DWARF Debugging Information Format, version 4, sections 2.6 (locations), 3.3 (functions) and
5.1 (base types).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from elftools.common.utils import bytes2str
from elftools.dwarf.dwarf_expr import DWARFExprParser
from elftools.elf.elffile import ELFFile

_QUALIFIERS = {"DW_TAG_const_type", "DW_TAG_volatile_type", "DW_TAG_typedef"}
_KINDS = {2: "b", 4: "f", 5: "i", 6: "i", 7: "u", 8: "u", 0x10: "u"}  # DW_ATE_boolean, float, ...
_SIZES = {1, 2, 4, 8}


class Local(NamedTuple):
    """A number among the parameters and variables of a function.

    Attributes
    ----------
    name, function : str
    dtype : dtype
    line : int
        Of its declaration.
    begin, end : int
        The code of its function, as addresses in the file.
    low : int
        From where on in it the variable is known.
    offset : int
        Of its place from the frame pointer.
    """

    name: str
    function: str
    dtype: np.dtype[Any]
    line: int
    begin: int
    end: int
    low: int
    offset: int


class Variables:
    """The variables of one library, those of functions that begin at a wanted address.

    Attributes
    ----------
    locals : list of Local
        Numbers in the frames of functions; none where the frame cannot be told.
    arrays : dict of str to (dtype, shape)
        Shared arrays and variables of the file; of dynamic shared memory the shape is empty.
    """

    def __init__(self, path: Path, is_wanted: Callable[[int], bool]) -> None:
        self.locals: list[Local] = []
        self.arrays: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}
        self._is_wanted = is_wanted
        for unit in ELFFile(BytesIO(path.read_bytes())).get_dwarf_info().iter_CUs():
            self._parser = DWARFExprParser(unit.structs)
            self._read(unit.get_top_DIE())

    def _read(self, scope: Any) -> None:
        """A unit or a namespace."""
        for die in scope.iter_children():
            if die.tag == "DW_TAG_namespace":
                self._read(die)
            elif die.tag == "DW_TAG_variable":
                self._note_array(die)
            elif die.tag == "DW_TAG_subprogram" and "DW_AT_low_pc" in die.attributes:
                begin, end = _range(die)
                if self._is_wanted(begin):
                    base = _frame_base(self._parser, die)
                    self._block(die, (_name(die), begin, end, base), begin)

    def _block(self, scope: Any, function: Any, low: int) -> None:
        """A function, or a block in it."""
        for die in scope.iter_children():
            if die.tag == "DW_TAG_lexical_block":
                whole = "DW_AT_low_pc" not in die.attributes  # it lies in several parts
                self._block(die, function, low if whole else _range(die)[0])
            elif die.tag in ("DW_TAG_variable", "DW_TAG_formal_parameter"):
                self._note_array(die)
                self._note_local(die, function, low)

    def _note_local(self, die: Any, function: Any, low: int) -> None:
        name, begin, end, base = function
        offset, dtype = _offset(self._parser, die), _number_of(_type(die))
        line = die.attributes.get("DW_AT_decl_line")
        if offset is None or dtype is None or line is None or base is None or not _name(die):
            return
        place = begin, end, low, base + offset
        self.locals.append(Local(_name(die), name, dtype, line.value, *place))

    def _note_array(self, die: Any) -> None:
        shape, element = _array(die)
        dtype = _number_of(element)
        if dtype is not None:
            self.arrays.setdefault(_name(die), (dtype, shape))


def _name(die: Any) -> str:
    for _ in range(3):
        if "DW_AT_name" in die.attributes:
            return str(bytes2str(die.attributes["DW_AT_name"].value))
        link = next(
            (a for a in ("DW_AT_abstract_origin", "DW_AT_specification") if a in die.attributes), ""
        )
        if not link:
            return ""
        die = die.get_DIE_from_attribute(link)
    return ""


def _type(die: Any) -> Any:
    """The type of a DIE without qualifiers and other names; None for void."""
    while "DW_AT_type" in die.attributes:
        die = die.get_DIE_from_attribute("DW_AT_type")
        if die.tag not in _QUALIFIERS:
            return die
    return None


def _number_of(kind: Any) -> np.dtype[Any] | None:
    if kind is None or kind.tag != "DW_TAG_base_type":
        return None
    letter = _KINDS.get(kind.attributes["DW_AT_encoding"].value)
    size = kind.attributes["DW_AT_byte_size"].value
    if letter is None or size not in _SIZES:
        return None
    return np.dtype(np.bool_) if letter == "b" else np.dtype(f"{letter}{size}")


def _array(die: Any) -> tuple[tuple[int, ...], Any]:
    """Shape and element type of an array, a reference to one, a pointer or a number."""
    kind = _type(die)
    if kind is not None and kind.tag in ("DW_TAG_reference_type", "DW_TAG_pointer_type"):
        kind = _type(kind)
    shape: list[int] = []
    while kind is not None and kind.tag == "DW_TAG_array_type":
        for child in kind.iter_children():
            about = child.attributes
            if "DW_AT_upper_bound" in about:
                shape.append(about["DW_AT_upper_bound"].value + 1)
            elif "DW_AT_count" in about:
                shape.append(about["DW_AT_count"].value)
        kind = _type(kind)
    return tuple(shape), kind


def _range(die: Any) -> tuple[int, int]:
    low, high = die.attributes["DW_AT_low_pc"].value, die.attributes["DW_AT_high_pc"]
    return low, high.value if high.form == "DW_FORM_addr" else low + high.value


def _frame_base(parser: Any, function: Any) -> int | None:
    """How far the frame base is from the frame pointer; None where that is not told."""
    if "DW_AT_frame_base" not in function.attributes:
        return None
    value = function.attributes["DW_AT_frame_base"].value
    steps = parser.parse_expr(value) if isinstance(value, list) else []
    if len(steps) != 1:
        return None
    name = steps[0].op_name
    if name in ("DW_OP_reg6", "DW_OP_reg29"):  # rbp, x29
        return 0
    if name == "DW_OP_call_frame_cfa" and os.uname().machine == "x86_64":
        return 16  # above the return address and the frame pointer of the caller
    return None


def _offset(parser: Any, die: Any) -> int | None:
    about = die.attributes.get("DW_AT_location")
    if about is None or not isinstance(about.value, list):
        return None
    steps = parser.parse_expr(about.value)
    if len(steps) == 1 and steps[0].op_name == "DW_OP_fbreg":
        return int(steps[0].args[0])
    return None
