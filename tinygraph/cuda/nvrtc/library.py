"""The library NVRTC through ctypes: where it is found, and how its answers are read."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tinygraph.base import KernelCompileError
from tinygraph.cuda.nvrtc.built import FOLDER

PACKAGES = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")


def output(program: ctypes.c_void_p, what: str) -> bytes:
    """Log, PTX or cubin of a program: NVRTC tells the size, then fills a buffer."""
    nvrtc, size = library(), ctypes.c_size_t()
    must(getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    must(getattr(nvrtc, f"nvrtcGet{what}")(program, buffer))
    return buffer.raw if what == "CUBIN" else buffer.value  # the texts end with a zero


def must(status: int) -> None:
    if status != 0:
        raise KernelCompileError(f"nvrtc: {error_text(status)}")


def error_text(status: int) -> str:
    text: bytes = library().nvrtcGetErrorString(status)
    return text.decode()


def version() -> str:
    """The version of NVRTC, as in "13.0".

    >>> int(version().split(".")[0]) >= 12
    True
    """
    major, minor = ctypes.c_int(), ctypes.c_int()
    must(library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return f"{major.value}.{minor.value}"


@cache
def architectures() -> tuple[int, ...]:
    """The numbers of the architectures that this NVRTC compiles for, ascending: 90 is sm_90.

    >>> 90 in architectures()
    True
    """
    count = ctypes.c_int()
    must(library().nvrtcGetNumSupportedArchs(ctypes.byref(count)))
    numbers = (ctypes.c_int * count.value)()
    must(library().nvrtcGetSupportedArchs(numbers))
    return tuple(sorted(numbers))


@cache
def library() -> ctypes.CDLL:
    """NVRTC, from the first place where it can be loaded."""
    reasons = []
    for path in candidates():
        try:
            _load_beside(path)
            found = ctypes.CDLL(str(path))
        except OSError as error:
            reasons.append(str(error))
            continue
        found.nvrtcGetErrorString.restype = ctypes.c_char_p
        return found
    expected = f"libnvrtc of the package {PACKAGES[0]} or of a CUDA toolkit"
    got = "; ".join(reasons) or "none"
    folder = os.environ.get(FOLDER)
    if folder:
        got += f", and no machine code of this kernel in {FOLDER}={folder}"
    way_out = (
        f"pip install {PACKAGES[0]}; or for a GPU: `tinygraph kernels --build DIR` where NVRTC is, "
        f"and {FOLDER}=DIR here"
    )
    raise KernelCompileError("nvrtc", "library", expected, got, way_out)


def _load_beside(path: Path | str) -> None:
    """Load the builtins that lie beside an NVRTC: that of 13.0's wheel does not look there."""
    beside = Path(path).parent if isinstance(path, Path) else None
    for builtins in sorted(beside.glob("libnvrtc-builtins.so.*")) if beside else []:
        ctypes.CDLL(str(builtins))


def headers() -> list[Path]:
    """Where CUDA's own headers lie, if they do: beside a toolkit's NVRTC, or in wheels."""
    path = Path(library()._name)
    if not path.is_absolute():
        return []
    root = path.parent.parent  # of CUDA 13's wheels all; of 12's the one of NVRTC
    places = root / "include", root.parent / "cuda_runtime" / "include"
    return [place for place in places if place.is_dir()]


def candidates() -> Iterator[Path | str]:
    """Where libnvrtc may be: the wheels for CUDA 13 and 12, a toolkit, the linker's places."""
    wheels = importlib.util.find_spec("nvidia")
    for folder in (wheels.submodule_search_locations or []) if wheels else []:
        yield from sorted(Path(folder).glob("cu*/lib/libnvrtc.so.*"), reverse=True)
        yield from sorted(Path(folder).glob("cuda_nvrtc/lib/libnvrtc.so.*"), reverse=True)
    for root in (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        if root:
            yield from sorted(Path(root).glob("lib64/libnvrtc.so.*"), reverse=True)
    found = ctypes.util.find_library("nvrtc")
    if found:
        yield found
