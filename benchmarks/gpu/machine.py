"""What the page says of the machine: GPU, driver, versions, and the tools that are there."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import subprocess
from typing import Any

from benchmarks.gpu import rehearsal
from benchmarks.host import commit

PACKAGES = ("numpy", "cupy", "torch", "pytest", "hypothesis", "matplotlib")
TOOLS = ("nvidia-smi", "compute-sanitizer", "ncu")


def find_gpu() -> tuple[Any, str]:
    """CuPy and "" where a GPU can be used; None and what is missing where none can."""
    try:
        import cupy
    except ImportError as error:
        return None, f"CuPy cannot be imported ({error})"
    if "rehearsal" in str(getattr(cupy, "__version__", "")) or rehearsal.cupy():
        return None, "this CuPy is for tests, and has no GPU"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # CUDARuntimeError: no driver, or no device
        return None, f"CuPy sees no GPU ({str(error).splitlines()[0]})"
    return (cupy, "") if count else (None, "CuPy sees no GPU")


def gpu_name(cupy: Any) -> str:
    name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"]
    return name.decode() if isinstance(name, bytes) else str(name)


def about(cupy: Any, torch: Any, date: str) -> str:
    """The lines under the title; `cupy` is None in a rehearsal."""
    lines = [f"- date: {date}", f"- tinygraph: {commit()}"]
    if cupy is not None:
        lines += _gpu_lines(cupy)
    lines.append(f"- host: {platform.machine()}, Python {platform.python_version()}")
    lines.append("- packages: " + ", ".join(_versions()))
    lines.append(
        f"- PyTorch: {torch.about()}"
        if torch is not None
        else "- PyTorch: not used, its columns are left out"
    )
    present = [f"{tool} {'found' if shutil.which(tool) else 'absent'}" for tool in TOOLS]
    lines.append("- tools: " + ", ".join(present))
    return "\n".join(lines)


def _gpu_lines(cupy: Any) -> list[str]:
    runtime, device = cupy.cuda.runtime, cupy.cuda.Device()
    properties = runtime.getDeviceProperties(device.id)
    memory = properties["totalGlobalMem"] / 2**30
    return [
        f"- GPU: {gpu_name(cupy)}, compute capability {device.compute_capability}, "
        f"{properties['multiProcessorCount']} multiprocessors, {memory:.0f} GiB",
        f"- driver: {_driver()}, CUDA of the driver {runtime.driverGetVersion()}, "
        f"of the run time {runtime.runtimeGetVersion()}",
        f"- clocks and power limit: {_query('clocks.sm,clocks.max.sm,power.limit')}",
    ]


def _driver() -> str:
    return _query("driver_version")


def _query(fields: str) -> str:
    """What nvidia-smi says, of the first GPU."""
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"]
    try:
        out = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return "unknown, nvidia-smi does not answer"
    return out.stdout.splitlines()[0].strip() if out.stdout.strip() else "unknown"


def _versions() -> list[str]:
    """Name and version of what is installed; CuPy's wheels carry the CUDA version in their name."""
    known = {"cupy": ("cupy-cuda12x", "cupy-cuda13x", "cupy")}
    found = []
    for package in PACKAGES:
        for name in known.get(package, (package,)):
            try:
                found.append(f"{name} {importlib.metadata.version(name)}")
                break
            except importlib.metadata.PackageNotFoundError:
                continue
        else:
            found.append(f"{package} absent")
    return found
