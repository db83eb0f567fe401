"""The main loops of kernels, for `tinygraph kernels`: what they issue, and whether bounds hold."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import Any

from tinygraph.base.errors import KernelCompileError
from tinygraph.base.text_table import aligned
from tinygraph.cuda import nvrtc
from tinygraph.cuda.machine_code import disassembly
from tinygraph.cuda.machine_code.floors import Bound, bounds
from tinygraph.cuda.machine_code.main_loop import MainLoop, main_loop
from tinygraph.cuda.reading.instances import Instance
from tinygraph.cuda.reading.source import Source

JUDGED = "sm_90"  # the architecture whose machine code the bounds of files are for


class MainLoops:
    """The main loops of instances on one architecture; none without a disassembler.

    Attributes
    ----------
    errors : list of str
        A bound that does not hold, or one that nobody can judge.
    summary : str
        For the last line of the command.
    """

    def __init__(self, instances: Sequence[Instance], archs: Sequence[str]) -> None:
        self.arch = JUDGED if JUDGED in archs else archs[0]
        stated = {i: found for i, x in enumerate(instances) if (found := bounds(x))}
        self.found: dict[int, MainLoop] = {}
        self.errors: list[str] = []
        self.summary = ""
        try:
            self.tool = f"nvdisasm {disassembly.version()}"
        except KernelCompileError as error:
            self.summary = "; main loops: not looked at, there is no nvdisasm"
            if stated:
                self.errors.append(
                    f"main loops, which have bounds in {len(stated)} kernels: {error}"
                )
            return
        self.found = _main_loops(instances, self.arch)
        judged = stated if self.arch == JUDGED else {}
        for at, wanted in judged.items():
            if at in self.found:
                self.errors += _broken(instances[at], self.found[at], wanted)
        if judged:
            self.summary = f"; main loops with bounds: {len(judged)}, not kept: {len(self.errors)}"

    def print(self, instances: Sequence[Instance]) -> None:
        """A line for each kernel that has a loop."""
        shown = [(instances[at], loop) for at, loop in self.found.items() if loop.is_loop]
        if not shown:
            return
        print()
        head = ("main loop", "instructions", "multiply-adds", "bytes/load", "divisions", "local")
        lines, files = [head], []
        for path, of_file in groupby(shown, key=lambda pair: pair[0].path):
            files.append((len(lines), path.name))
            lines += [_line(instance, loop) for instance, loop in of_file]
        text = aligned(lines)
        for at, name in reversed(files):
            text.insert(at, name)
        print("\n".join(text))

    def to_dict(self, at: int) -> dict[str, Any] | None:
        loop = self.found.get(at)
        if loop is None:
            return None
        return {
            "arch": self.arch,
            "is_loop": loop.is_loop,
            "instructions": loop.instructions,
            "multiply_adds": loop.multiply_adds,
            "loads": loop.loads,
            "bytes_a_load": loop.bytes_a_load,
            "divisions": loop.divisions,
            "local": loop.local,
            "opcodes": loop.opcodes,
        }


def _main_loops(instances: Sequence[Instance], arch: str) -> dict[int, MainLoop]:
    """By place in `instances`; those that do not compile are left out."""
    programs: dict[Hashable, list[int]] = {}
    for at, instance in enumerate(instances):
        programs.setdefault((instance.path, tuple(instance.defines.items())), []).append(at)

    def of_program(ats: list[int]) -> dict[int, MainLoop]:
        first = instances[ats[0]]
        source = Source.read(first.path, first.defines)
        try:
            # The same program as for the resources, and so from the cache.
            machine_code = nvrtc.compile(source, [instances[at].name for at in ats], arch)
        except KernelCompileError:
            return {}
        return {at: main_loop(one) for at, one in zip(ats, machine_code, strict=True)}

    found: dict[int, MainLoop] = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # nvdisasm is a process of its own
        for part in pool.map(of_program, programs.values()):
            found |= part
    return dict(sorted(found.items()))


def _broken(instance: Instance, loop: MainLoop, wanted: Sequence[Bound]) -> list[str]:
    return [
        f"{instance}, {JUDGED}: main loop: expected {bound}, got {got:.4g} "
        f"({loop.instructions} instructions in a pass: {_mix(loop)}). Way out: read the loop with "
        "nvdisasm; where a change is worth more than the share, state another bound"
        for bound in wanted
        if not bound.holds(got := loop.measure(bound.what))
    ]


def _mix(loop: MainLoop) -> str:
    most = sorted(loop.opcodes.items(), key=lambda item: -item[1])[:6]
    return ", ".join(f"{times} {opcode}" for opcode, times in most)


def _line(instance: Instance, loop: MainLoop) -> tuple[str, str, str, str, str, str]:
    share = f"{loop.kind} {loop.share(loop.kind):5.1%}" if loop.kind else ""
    width = "" if loop.bytes_a_load is None else f"{loop.bytes_a_load:.1f}"
    return (
        f"  {instance.label}",
        str(loop.instructions),
        share,
        width,
        str(loop.divisions),
        str(loop.local),
    )
