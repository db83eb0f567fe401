"""What kernels take of a GPU, and what the machine code of their main loops issues: `make kernels`.

    python -m benchmarks.kernels                      all kernels of tinygraph
    python -m benchmarks.kernels FILE --arch sm_90    those of a file

`tinygraph kernels` prints the first table, of registers, spills and occupancy; the second one needs
nvdisasm besides NVRTC, and no GPU.  It fails where a kernel does not compile or spills, and where a
main loop breaks a bound that its file states (machine_code/floors.py).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

from benchmarks.machine_code import disassembly
from benchmarks.machine_code.floors import Bound, bounds
from benchmarks.machine_code.main_loop import MainLoop, main_loop
from tinygraph.base.errors import ArgumentError, KernelCompileError, TinygraphError
from tinygraph.base.text_table import aligned
from tinygraph.cli.kernels import list_kernels
from tinygraph.cuda import nvrtc
from tinygraph.cuda.nvrtc import ARCHITECTURES
from tinygraph.cuda.reading.instances import Instance, inventory
from tinygraph.cuda.reading.source import Source

JUDGED = "sm_90"  # the architecture whose machine code the bounds of files are for


class MainLoops:
    """The main loops of instances on one architecture; none without a disassembler.

    Attributes
    ----------
    errors : list of str
        A bound that does not hold, or one that nobody can judge.
    summary : str
        The last line.
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
            self.summary = "main loops: not looked at, there is no nvdisasm"
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
            self.summary = f"main loops with bounds: {len(judged)}, not kept: {len(self.errors)}"

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


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both tables; 0 where all is well, 1 where not, 2 where nothing was asked that is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help=".cu files; default: all there are"
    )
    parser.add_argument("--arch", action="append", default=[], choices=(*ARCHITECTURES, "all"))
    args = parser.parse_args(arguments, argparse.Namespace(build=None))
    try:
        good = list_kernels(args)["ok"]
        instances = inventory(args.files or None)
        loops = MainLoops(instances, [a for a in args.arch if a != "all"] or ARCHITECTURES)
    except TinygraphError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, ArgumentError) else 1
    loops.print(instances)
    for text in loops.errors:
        print(f"error: {text}", file=sys.stderr)
    if loops.summary:
        print(loops.summary)
    return 0 if good and not loops.errors else 1


if __name__ == "__main__":
    sys.exit(main())
