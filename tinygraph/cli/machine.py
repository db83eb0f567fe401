"""`tinygraph doctor`: what there is on this machine, and what is missing."""

from __future__ import annotations

import importlib.metadata
import os
import shlex
import shutil
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import tinygraph
from tinygraph.base import KernelCompileError, TinygraphError, install
from tinygraph.cuda import Kernel
from tinygraph.cuda.emulator.compiler import find_compiler
from tinygraph.cuda.nvrtc.compiling import version
from tinygraph.distributed import world
from tinygraph.engine import get_device
from tinygraph.recipes.settings import DEVICES
from tinygraph.training import environment

EXTRAS = {  # extra -> libraries as they are imported
    "data": ("sklearn", "pooch", "PIL"),
    "plot": ("matplotlib",),
    "fast": ("numba", "threadpoolctl"),
    "emulator": ("ziglang",),
    "mpi": ("mpi4py",),
    "onnx": ("onnx",),
    "cuda13": ("cupy",),  # or cuda12, if that one's CuPy is there
}

# In a process of its own: a library of MPI that does not fit may end the process that loads it.
ASK_MPI = """
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
print(MPI.get_vendor()[0], MPI.Get_library_version().splitlines()[0].strip(), sep="\\n")
"""
OF_MPIEXEC = {"hydra": "MPICH", "open mpi": "Open MPI", "openrte": "Open MPI", "prrte": "Open MPI"}

PROBE = """__global__ void probe(int* y)
{
    y[threadIdx.x] = threadIdx.x;
}
"""


def doctor(args: Namespace) -> dict[str, Any]:
    """Say what tinygraph finds on this machine."""
    found = environment()
    blas = found["blas"]
    warm = warmed() if args.warm else None
    devices = {name: _device(name) for name in DEVICES}
    distributions = importlib.metadata.packages_distributions()  # reads every installed package
    libraries = {name: _version(name, distributions) for names in EXTRAS.values() for name in names}
    compiler, nvrtc = _compiler(), _nvrtc()
    warnings = []
    if "OPENBLAS_CORETYPE" in os.environ:
        core = os.environ["OPENBLAS_CORETYPE"]
        warnings.append(f"OPENBLAS_CORETYPE={core} forces BLAS kernels: this can halve the speed")
    mpi = _mpi(warnings)
    print(f"python     {found['python']} ({sys.executable})")
    print(f"numpy      {found['numpy']}")
    print(f"tinygraph  {tinygraph.__version__}")
    print(f"system     {found['platform']}, {found['cpus']} CPUs")
    threads = blas["threads"] or f"unknown ({install('fast')} to know)"
    core = f", {blas['core']} kernels" if blas["core"] else ""
    print(f"blas       {blas['name']} {blas['version']}{core}, threads: {threads}")
    for name, state in devices.items():
        print(f"{name:9}  {state}")
    print(f"compiler   {compiler or 'no C++ compiler found'}")
    print(f"nvrtc      {nvrtc or 'absent: pip install nvidia-cuda-nvrtc'}")
    for name in ("mpi", "mpiexec", "ranks"):
        print(f"{name:9}  {mpi[name]}")
    for extra, names in EXTRAS.items():
        if "cupy-cuda12x" in distributions.get(names[0], ()):
            extra = "cuda12"
        print(f"[{extra}]".ljust(10), end=" ")
        print(", ".join(f"{name} {libraries[name] or 'absent'}" for name in names), end="")
        missing = not all(libraries[name] for name in names)
        print(f": {install(extra)}" if missing else "")
    for warning in warnings:
        print(f"warning: {warning}")
    return {
        **found,
        "tinygraph": tinygraph.__version__,
        "devices": devices,
        "compiler": compiler,
        "nvrtc": nvrtc,
        "libraries": libraries,
        "mpi": mpi,
        "warnings": warnings,
        "warm": warm,
    }


def warmed() -> float | None:
    """Compile what all kernels on the emulator share, and say so; seconds, or None without it.

    One small launch of each kind does it: the run time is built, the headers are read, and the
    compiler has made its own libraries.
    """
    print("making the emulator ready (the first time it is compiled) ...", flush=True)
    begun = time.perf_counter()
    try:
        probe, y = Kernel(PROBE, "probe"), np.empty(32, np.int32)
        probe(1, 32, y)
        probe.check(1, 32, y, profile=True)
        probe.check(1, 32, y, trace=True)
        probe.check(1, 32, y)
    except TinygraphError as error:
        print(f"emulator   {_absent(error)}")
        return None
    seconds = time.perf_counter() - begun
    print(f"emulator   ready after {seconds:.1f} s")
    return seconds


def _mpi(warnings: list[str]) -> dict[str, Any]:
    """The library of MPI that mpi4py has found, its launcher, and the ranks of this launch."""
    ranks = world()
    vendor, library = _mpi_library()
    launcher = shutil.which("mpiexec", path=str(Path(sys.executable).parent))
    launcher = launcher or shutil.which("mpiexec")
    if library and not launcher:
        warnings.append("there is no mpiexec beside this Python nor on the PATH")
    of = _mpi_of(launcher) if launcher else ""
    if vendor and of and of != vendor:
        warnings.append(f"mpi4py has {vendor}, and {launcher} is that of {of}: {install('mpi')}")
    if ranks.crowd:
        warnings.append(ranks.crowd)
    alone = "one process, without a launcher"
    each = f"{ranks.local_cores / ranks.local_size:g} cores for each of {ranks.local_size} here"
    return {
        "mpi": library or f"absent: {install('mpi')}",
        "mpiexec": f"{launcher}{f' of {of}' if of else ''}" if launcher else "absent",
        "ranks": f"{ranks.size}, by {ranks.name}; {each}" if ranks.size > 1 else alone,
        "size": ranks.size,
        "cores": ranks.local_cores,
    }


def _mpi_library() -> tuple[str, str]:
    """Who made the library of MPI that mpi4py loads, and what it calls itself; or why not."""
    if find_spec("mpi4py") is None:
        return "", ""
    found = _output([sys.executable, "-c", ASK_MPI])
    vendor, _, library = found.rstrip().partition("\n")
    return (
        (vendor, " ".join(library.split())) if library else ("", "mpi4py finds no library of MPI")
    )


def _mpi_of(launcher: str) -> str:
    """Whose launcher it is, as far as it says so."""
    said = _output([launcher, "--version"]).lower()
    return next((maker for word, maker in OF_MPIEXEC.items() if word in said), "")


def _output(command: list[str]) -> str:
    """What a program prints, without the variables of a launch; nothing where it fails."""
    own = ("PMI", "OMPI_", "MPI_", "PRTE_")
    free = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    try:
        done = subprocess.run(command, capture_output=True, env=free, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


def _absent(error: TinygraphError) -> str:
    return f"not available: {' '.join(str(error).split())}"


def _device(name: str) -> str:
    try:
        if get_device(name) == "emulator":
            Kernel(PROBE, "probe")(1, 32, np.empty(32, np.int32))  # whatever may fail, fails here
    except TinygraphError as error:
        return _absent(error)
    return "available"


def _version(module: str, distributions: Mapping[str, list[str]]) -> str | None:
    """The version of a library, without importing it; None if it is absent."""
    if find_spec(module) is None:
        return None
    names = distributions.get(module, [module])
    try:
        return importlib.metadata.version(names[0])
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


def _compiler() -> str | None:
    """The compiler that the emulator would take."""
    try:
        return shlex.join(find_compiler().command)
    except KernelCompileError:
        return None


def _nvrtc() -> str | None:
    """The version of NVIDIA's compiler for the check without a GPU."""
    try:
        return version()
    except KernelCompileError:
        return None
