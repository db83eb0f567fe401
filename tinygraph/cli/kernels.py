"""`tinygraph kernels`: what kernels take of a GPU, without one."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from argparse import Namespace
from collections.abc import Hashable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

from tinygraph.base import ArgumentError, KernelCompileError
from tinygraph.base.helper_processes import left_to_the_program, out_of_reach
from tinygraph.base.paths import typed
from tinygraph.cuda import nvrtc
from tinygraph.cuda.nvrtc import ARCHITECTURES, Resources
from tinygraph.cuda.nvrtc.built import FOLDER
from tinygraph.cuda.reading.instances import Instance, inventory
from tinygraph.cuda.reading.source import Source

Outcome = Resources | KernelCompileError
FEW = 16  # compilations that one process has done before others would have started


def list_kernels(args: Namespace) -> dict[str, Any]:
    """Compile kernels for each architecture; print what they take, what spills and what fails.

    With --build the machine code is put into a folder, for machines without a compiler.
    """
    for file in args.files:
        if not Path(file).is_file():
            raise ArgumentError("kernels", "FILE", "a .cu file", repr(file), "correct the path")
    if args.build:
        _make_folder(args.build)
    instances = inventory(args.files or None)
    every = "all" in args.arch
    archs = ARCHITECTURES if every or not args.arch else tuple(dict.fromkeys(args.arch))
    version = nvrtc.version()  # without NVRTC one error, not one for each kernel
    outcomes = _compiled(instances, archs, args.build)
    good = [[r for r in row if isinstance(r, Resources)] for row in outcomes]
    errors = [
        f"{instance}, {arch}: {outcome}"
        for instance, row in zip(instances, outcomes, strict=True)
        for arch, outcome in zip(archs, row, strict=True)
        if isinstance(outcome, KernelCompileError)
    ]
    if args.build:
        return _built(args.build, archs, sum(map(len, good)), errors)
    spills = [
        f"{instance}, {r.arch}: spills {r.spill_stores} bytes of stores and {r.spill_loads} of "
        "loads to local memory. Way out: fewer values alive at once, or a smaller block in "
        "__launch_bounds__"
        for instance, row in zip(instances, good, strict=True)
        for r in row
        if r.spills
    ]
    _print_table(instances, good, every=every)
    for text in errors + spills:
        print(f"error: {text}", file=sys.stderr)
    print(
        f"kernels: {len(instances)}, architectures: {', '.join(archs)}, NVRTC {version}; "
        f"compile errors: {len(errors)}, spills: {len(spills)}"
    )
    return {
        "nvrtc": version,
        "architectures": list(archs),
        "ok": not errors and not spills,
        "kernels": [
            {
                "file": str(instance.path),
                "kernel": instance.name,
                "defines": instance.defines,
                "resources": [asdict(resources) for resources in row],
            }
            for instance, row in zip(instances, good, strict=True)
        ],
        "errors": errors + spills,
    }


def _make_folder(folder: str) -> None:
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError("kernels", "--build", "a folder to write to", str(error)) from None


def _built(folder: str, archs: Sequence[str], count: int, errors: list[str]) -> dict[str, Any]:
    """Say what lies in a folder of machine code now."""
    for text in errors:
        print(f"error: {text}", file=sys.stderr)
    print(
        f"machine code: {count} files in {folder}, architectures: {', '.join(archs)}, NVRTC "
        f"{nvrtc.version()}; compile errors: {len(errors)}. Where the GPU is: "
        f"{FOLDER}={typed(folder)}"
    )
    return {
        "nvrtc": nvrtc.version(),
        "architectures": list(archs),
        "ok": not errors,
        "folder": folder,
        "files": count,
        "errors": errors,
    }


def _compiled(
    instances: Sequence[Instance], archs: Sequence[str], folder: str | None
) -> list[list[Outcome]]:
    """A row for each kernel, with an outcome for each architecture.

    Kernels of one file with the same macros are one program: most of the time goes into reading
    headers.  What is built into a folder is loaded one kernel at a time, and so each is a program.
    NVRTC compiles one program at a time in a process, so that many go to several.
    """
    programs: dict[Hashable, list[int]] = {}
    for at, instance in enumerate(instances):
        program = (instance.path, tuple(instance.defines.items()))
        programs.setdefault(at if folder else program, []).append(at)
    # The longest first: none is left over for the end, when other processes have nothing to do.
    jobs = [
        (ats, arch) for ats in sorted(programs.values(), key=len, reverse=True) for arch in archs
    ]
    given = [([instances[at] for at in ats], arch, folder) for ats, arch in jobs]
    if len(jobs) <= FEW:
        outcomes = [_outcomes(job) for job in given]
    else:
        outcomes = _shared_out(given)
    found = {
        (at, arch): outcome
        for (ats, arch), several in zip(jobs, outcomes, strict=True)
        for at, outcome in zip(ats, several, strict=True)
    }
    return [[found[at, arch] for arch in archs] for at in range(len(instances))]


def _shared_out(jobs: list[Any]) -> list[list[Outcome]]:
    """The outcomes of jobs that several processes share."""
    spawn = multiprocessing.get_context("spawn")  # a fork would copy locks of other threads
    others = {*multiprocessing.active_children()}
    ctrl_c = (signal.SIGINT,)  # is for this process
    pool = ProcessPoolExecutor(
        os.cpu_count(), spawn, initializer=left_to_the_program, initargs=(ctrl_c,)
    )
    try:
        with out_of_reach(ctrl_c):
            found = pool.map(_outcomes, jobs)
        return list(found)
    except BaseException:
        for child in {*multiprocessing.active_children()} - others:
            child.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _outcomes(job: tuple[Sequence[Instance], str, str | None]) -> list[Outcome]:
    """Of the kernels of one program; where it fails, of each by itself, to see which one it was."""
    instances, arch, folder = job
    source = Source.read(instances[0].path, instances[0].defines)
    names = [instance.name for instance in instances]
    try:
        if folder:
            nvrtc.build(source, names[0], arch, folder)
        return list(nvrtc.resources_of_all(source, names, arch))
    except KernelCompileError as error:
        if len(names) == 1:
            return [error]
    return [_outcomes(([instance], arch, folder))[0] for instance in instances]


def _print_table(
    instances: Sequence[Instance], rows: Sequence[Sequence[Resources]], every: bool
) -> None:
    """A line for each kernel, with its worst architecture; or for each architecture."""
    width = max(len(instance.label) for instance in instances) + 2
    print(f"{'kernel':{width}}  arch    registers  spills  shared  threads  occupancy")
    pairs = zip(instances, rows, strict=True)
    for path, of_file in groupby(pairs, key=lambda pair: pair[0].path):
        print(path.name)
        for instance, row in of_file:
            for r in row if every else sorted(row, key=_badness)[-1:]:
                print(
                    f"  {instance.label:{width - 2}}  {r.arch:7} {r.registers:9} {r.spills:7} "
                    f"{r.shared:7} {r.threads:8} {r.occupancy.share:9.0%}"
                )
            if not row:
                print(f"  {instance.label:{width - 2}}  does not compile")


def _badness(r: Resources) -> tuple[int, float, int]:
    return r.spills, -r.occupancy.share, r.registers
