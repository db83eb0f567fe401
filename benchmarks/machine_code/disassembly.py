"""Machine code as instructions (SASS): what NVIDIA's disassembler nvdisasm says of a cubin.

It needs the wheel `nvidia-cuda-nvdisasm`, a CUDA toolkit or Triton, but no GPU and no driver.

Source: NVIDIA, "CUDA Binary Utilities", nvdisasm and the instruction set references.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tinygraph.base.build_cache import compiled
from tinygraph.base.errors import KernelCompileError

PACKAGE = "nvidia-cuda-nvdisasm"
WORD = 16  # bytes of an instruction, from Volta (sm_70) on


class Instruction(NamedTuple):
    """One instruction, as in `@!P0 LDG.E.128 R4, desc[UR4][R2.64]`."""

    guard: str  # "P0", "!P0"; "" where it runs in every thread
    opcode: str  # with its modifiers
    operands: tuple[str, ...] = ()

    @property
    def base(self) -> str:
        """The opcode without modifiers."""
        return self.opcode.partition(".")[0]

    @property
    def modifiers(self) -> tuple[str, ...]:
        return tuple(self.opcode.split(".")[1:])

    @property
    def target(self) -> int | None:
        """The number of the instruction that a jump names, if it names one."""
        last = self.operands[-1] if self.operands else ""
        return int(last, 16) // WORD if last.startswith("0x") else None

    def __str__(self) -> str:
        guard = f"@{self.guard} " if self.guard else ""
        return f"{guard}{self.opcode} {', '.join(self.operands)}".strip()


def disassemble(cubin: bytes) -> dict[str, list[Instruction]]:
    """The instructions of each function of a cubin, by the function's symbol.

    Raises
    ------
    KernelCompileError
        There is no nvdisasm, or it does not read the cubin.

    Examples
    --------
    >>> from tinygraph.cuda.nvrtc import compile
    >>> from tinygraph.cuda.reading.source import Source
    >>> text = 'extern "C" __global__ void one(float* y) { y[threadIdx.x] = 1.0f; }'
    >>> [machine_code] = compile(Source.read(text), ["one"], "sm_90")
    >>> [str(found) for found in disassemble(machine_code.cubin)["one"]][-1]
    'NOP'
    """

    def build(path: Path) -> None:
        image = path.with_suffix(".cubin")
        image.write_bytes(cubin)
        try:
            path.write_bytes(zlib.compress(_run("-json", str(image)).encode()))
        finally:
            image.unlink()

    parts = ["nvdisasm", version(), hashlib.sha256(cubin).hexdigest()]
    text = zlib.decompress(compiled(parts, ".sass", build).read_bytes())
    _, functions = json.loads(text)
    return {
        function["function-name"]: [_instruction(found) for found in function["sass-instructions"]]
        for function in functions
    }


def _instruction(found: dict[str, Any]) -> Instruction:
    operands = (part.replace(".reuse", "") for part in found.get("operands", "").split(","))
    guard = found.get("predicate", "").removeprefix("@")
    return Instruction(guard, found["opcode"], tuple(filter(None, operands)))


@cache
def version() -> str:
    """The version of nvdisasm, as in "13.5.37".

    >>> int(version().split(".")[0]) >= 12
    True
    """
    found = re.search(r"\bV(\d+(?:\.\d+)+)", _run("--version"))
    return found[1] if found else "unknown"


def _run(*arguments: str) -> str:
    tool = disassembler()
    done = subprocess.run(
        [tool, *arguments], capture_output=True, encoding="utf-8", errors="replace"
    )
    if done.returncode != 0:
        way_out = f"one that writes JSON: pip install --upgrade {PACKAGE}"
        got = done.stderr.strip() or f"exit status {done.returncode}"
        raise KernelCompileError("nvdisasm", str(tool), "to read the machine code", got, way_out)
    return done.stdout


def disassembler() -> Path:
    """nvdisasm, from the first place where it is."""
    for path in candidates():
        if path.is_file():
            return path
    expected = f"nvdisasm of the package {PACKAGE} or of a CUDA toolkit"
    raise KernelCompileError("nvdisasm", "program", expected, "none", f"pip install {PACKAGE}")


def candidates() -> Iterator[Path]:
    """Where nvdisasm may be: the wheel, a toolkit, the PATH, and what Triton brings."""
    for package, pattern in (("nvidia", "cu*/bin/nvdisasm"), ("nvidia", "*/bin/nvdisasm")):
        yield from _in_package(package, pattern)
    for root in (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        if root:
            yield Path(root, "bin", "nvdisasm")
    if found := shutil.which("nvdisasm"):
        yield Path(found)
    yield from _in_package("triton", "backends/nvidia/bin/nvdisasm")


def _in_package(package: str, pattern: str) -> Iterator[Path]:
    found = importlib.util.find_spec(package)
    for folder in (found.submodule_search_locations or []) if found else []:
        yield from sorted(Path(folder).glob(pattern), reverse=True)
