"""What the checker's part of the run time keeps, and the functions that hand it out."""

from __future__ import annotations

import ctypes
from typing import Any

from tinygraph.cuda.emulator.native import declare, runtime


class Place(ctypes.Structure):
    """`Place` in runtime/runtime.h."""

    _fields_ = [("file", ctypes.c_char_p), ("line", ctypes.c_int32), ("pc", ctypes.c_size_t)]


_THREE = ctypes.c_uint32 * 3
_PATH = ctypes.c_size_t * 8


class Found(ctypes.Structure):
    """`Found` in runtime/findings.c."""

    _fields_ = [
        ("kind", ctypes.c_int32),
        ("has_index", ctypes.c_int32),
        ("place", Place),
        ("other", Place),
        ("path", _PATH),
        ("other_path", _PATH),
        ("index", ctypes.c_int64),
        *[(name, _THREE) for name in ("block", "thread", "other_block", "other_thread")],
        *[(name, ctypes.c_uint32) for name in ("has_other", "event", "others", "uncounted")],
        *[(name, ctypes.c_uint32) for name in ("seen", "alike", "look", "sure")],
        ("array", ctypes.c_char * 64),
        ("text", ctypes.c_char * 400),
    ]


COUNTS = ("requests", "sectors", "least_sectors", "wavefronts", "least_wavefronts")


class Counter(ctypes.Structure):
    """`Counter` in runtime/profile.c."""

    _fields_ = [
        *[(name, ctypes.c_uint32) for name in ("site", "shared", "how", "size")],
        *[(name, ctypes.c_uint64) for name in COUNTS],
    ]


def checker_library() -> Any:
    """The run time with the types of the checker's functions."""
    library = runtime()
    if not getattr(library, "knows_checker", False):
        declare(
            library,
            tg_check_begin="izz",
            tg_follow_begin="zz",
            tg_check_absent_value="z",
            tg_check_region="zzsuui",
            tg_far_memory="z",
            tg_far_free="pz",
            tg_site="u",
            tg_profile_line="up",
            tg_profile_block="upp",
            tg_trace_begin="puui",
            tg_trace_end="pp",
            tg_trace_variables="puu",
            tg_trace_changes="p",
            tg_region="uspppp",
        )
        library.tg_far_memory.restype = ctypes.c_void_p
        library.tg_site.restype = Place
        library.tg_check_findings.restype = ctypes.c_uint32
        library.tg_trace_end.restype = ctypes.c_uint32
        library.tg_trace_changes.restype = ctypes.c_uint32
        if library.tg_finding_size() != ctypes.sizeof(Found):
            raise RuntimeError("emulator: run time and checker.py disagree on struct Found")
        library.knows_checker = True
    return library
