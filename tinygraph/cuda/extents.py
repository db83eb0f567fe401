"""Grid, block and shared memory of a launch: the limits of the hardware.

Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from tinygraph.errors import KernelLaunchError

Extent = tuple[int, int, int]

MOST_BLOCKS = (2**31 - 1, 65535, 65535)
MOST_THREADS = (1024, 1024, 64)
MOST_THREADS_OF_A_BLOCK = 1024
MOST_SHARED = 227 * 1024  # bytes of a block, on compute capability 9.0 and later

_AXES = "xyz"


def blocks(n: int, threads: int) -> int:
    """How many blocks of `threads` threads hold one thread for each of n elements.

    It is 0 for n = 0: there is nothing to launch then, and a grid of 0 is an error.

    >>> blocks(1000, 256), blocks(0, 256)
    (4, 0)
    """
    return -(-n // threads)


def check_grid(kernel: str, grid: int | Sequence[int]) -> Extent:
    """The grid as three numbers, or a KernelLaunchError."""
    x, y, z = extent = _extent(kernel, "grid", grid)
    if x < 1 or y < 1 or z < 1:
        raise KernelLaunchError(
            kernel,
            "grid",
            "at least 1 block on each axis",
            _written(extent),
            "launch nothing where there is nothing to compute",
        )
    if x > MOST_BLOCKS[0] or y > MOST_BLOCKS[1] or z > MOST_BLOCKS[2]:
        _too_many(
            kernel,
            "grid",
            "blocks",
            extent,
            MOST_BLOCKS,
            "take the long axis first, or let each thread do several elements",
        )
    return extent


def check_block(kernel: str, block: int | Sequence[int], launch_bounds: int | None) -> Extent:
    """The block as three numbers, or a KernelLaunchError."""
    x, y, z = extent = _extent(kernel, "block", block)
    if x < 1 or y < 1 or z < 1:
        raise KernelLaunchError(kernel, "block", "at least 1 thread on each axis", _written(extent))
    if z > MOST_THREADS[2] or max(x, y) > MOST_THREADS[0]:
        _too_many(kernel, "block", "threads", extent, MOST_THREADS, "use more blocks")
    threads = x * y * z
    if threads > MOST_THREADS_OF_A_BLOCK:
        raise KernelLaunchError(
            kernel,
            "block",
            f"at most {MOST_THREADS_OF_A_BLOCK} threads",
            f"{_written(extent)} = {threads}",
            "use more blocks of fewer threads",
        )
    if launch_bounds is not None and threads > launch_bounds:
        raise KernelLaunchError(
            kernel,
            "block",
            f"at most {launch_bounds} threads, as __launch_bounds__ of the kernel promises",
            f"{_written(extent)} = {threads}",
            "use a smaller block, or change the bound",
        )
    return extent


def check_shared(kernel: str, shared: Any) -> int:
    """The bytes of dynamic shared memory, or a KernelLaunchError."""
    if type(shared) is int and 0 <= shared <= MOST_SHARED:
        return shared
    try:
        size = operator.index(shared)
    except TypeError:
        raise KernelLaunchError(
            kernel, "shared", "a number of bytes", repr(shared), "an int"
        ) from None
    if not 0 <= size <= MOST_SHARED:
        raise KernelLaunchError(
            kernel,
            "shared",
            f"from 0 to {MOST_SHARED} bytes",
            size,
            "use a smaller tile; global memory holds the rest",
        )
    return size


def _extent(kernel: str, argument: str, value: Any) -> Extent:
    if type(value) is int:
        return (value, 1, 1)
    try:
        sizes = [operator.index(v) for v in (value if hasattr(value, "__iter__") else (value,))]
    except TypeError:
        sizes = []
    if not 1 <= len(sizes) <= 3:
        raise KernelLaunchError(kernel, argument, "an int or a tuple of 1 to 3 ints", repr(value))
    x, y, z = (*sizes, 1, 1)[:3]
    return (x, y, z)


def _too_many(
    kernel: str, argument: str, unit: str, extent: Extent, most: Extent, way_out: str
) -> None:
    axis = next(i for i in range(3) if extent[i] > most[i])
    raise KernelLaunchError(
        kernel,
        argument,
        f"at most {most[axis]} {unit} on axis {_AXES[axis]}",
        _written(extent),
        way_out,
    )


def _written(extent: Extent) -> str:
    return " x ".join(map(str, extent))
