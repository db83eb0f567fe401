"""Launch kernels of tinygraph, each instance once, and compare what they write with numpy.

    python -m benchmarks.gpu.launch_kernels [--device cuda|emulator] [FILE.cu ...]

The launches are those on which the tests plant mistakes (tests/cuda/launches.py); of each compiled
kernel the one with the most threads is made.  It runs under compute-sanitizer too: each array has
an allocation of its own, as in launch_gallery.py.  Prints a line for each that is wrong or does not
run, then how many were made; ends with 1 if one was wrong.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from benchmarks.gpu.launch_gallery import on_gpu
from tests.cuda.launch import Launch
from tests.cuda.launches import families, launches_of
from tinygraph.cuda import InOut, Kernel, Out
from tinygraph.cuda.reading.source import kernel_file


def wrongs(launch: Launch, cupy: Any) -> list[str]:
    """Make a launch, and say what it wrote that is not numpy's; `cupy` is None on the emulator."""
    kernel = Kernel(kernel_file(launch.file), launch.name, launch.defines)
    given = launch.given()
    if cupy is None:
        kernel(launch.grid, launch.block, *given, shared=launch.shared)
        return launch.wrong(kernel, given)
    there = [on_gpu(cupy, value) for value in given]
    kernel(launch.grid, launch.block, *there, shared=launch.shared)
    cupy.cuda.Device().synchronize()
    back = [_array(value) for value in there]
    return launch.wrong(kernel, [v.get() if hasattr(v, "get") else v for v in back])


def _array(value: Any) -> Any:
    return value.array if isinstance(value, (InOut, Out)) else value


def main() -> int:
    parser = argparse.ArgumentParser(description="Launch kernels of tinygraph, each once.")
    parser.add_argument("--device", choices=("cuda", "emulator"), default="cuda")
    parser.add_argument("files", nargs="*", metavar="FILE.cu")
    args = parser.parse_args()
    cupy = None
    if args.device == "cuda":
        import cupy

        cupy.cuda.set_allocator(None)
    made = bad = 0
    for file in args.files or sorted(families()):
        for group in launches_of(file).values():
            launch = max(group, key=lambda one: one.threads)
            try:
                found = wrongs(launch, cupy)
            except Exception as error:
                found = [f"{launch}: {type(error).__name__}: {' '.join(str(error).split())[:200]}"]
            made, bad = made + 1, bad + bool(found)
            for line in found:
                print(f"wrong: {file}: {line}", flush=True)
    print(f"launched {made} kernels, {bad} wrong", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
