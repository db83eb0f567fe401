"""Launch kernels of the gallery, one after the other: the child process of two sections.

    python -m benchmarks.gpu.launch_gallery [--device cuda|emulator] FILE.cu ...

It runs under compute-sanitizer or ncu.  On cuda each array has an allocation of its own, without
CuPy's memory pool, so that memcheck sees its true end; and an output is not initialised, so that
initcheck sees who reads it too early.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gpu.gallery import GalleryKernel
from tinygraph.cli.check_kernel import arguments_of, kernel_of
from tinygraph.cuda import InOut, Out


def on_gpu(cupy: Any, value: Any) -> Any:
    """The argument with its array copied to the GPU; the array of an `Out` is not copied."""
    if isinstance(value, Out):
        return Out(cupy.empty(value.array.shape, value.array.dtype))
    if isinstance(value, InOut):
        return InOut(cupy.asarray(value.array))
    return cupy.asarray(value) if isinstance(value, np.ndarray) else value


def launch(entry: GalleryKernel, device: str) -> None:
    """Launch once and wait."""
    spec = entry.launch
    kernel = kernel_of(entry.path, spec)
    values = arguments_of(kernel.signature, spec)
    if device == "emulator":
        kernel(spec.grid, spec.block, *values, shared=spec.shared)
        return
    import cupy

    cupy.cuda.set_allocator(None)
    kernel(spec.grid, spec.block, *(on_gpu(cupy, v) for v in values), shared=spec.shared)
    cupy.cuda.Device().synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description="Launch kernels of the gallery.")
    parser.add_argument("--device", choices=("cuda", "emulator"), default="cuda")
    parser.add_argument("files", nargs="+", type=Path)
    args = parser.parse_args()
    for path in args.files:
        launch(GalleryKernel(path), args.device)
        print(f"launched {path.stem}", flush=True)


if __name__ == "__main__":
    main()
