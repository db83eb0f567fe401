"""Grid, block and shared memory of a launch: the limits of the hardware.

Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
"""

from __future__ import annotations

import operator
from typing import Any

from tinygraph.base import KernelLaunchError

Extent = tuple[int, int, int]

MOST_BLOCKS = (2**31 - 1, 65535, 65535)
MOST_THREADS = (1024, 1024, 64)
MOST_THREADS_OF_A_BLOCK = 1024
MOST_SHARED = 227 * 1024  # bytes of a block, on compute capability 9.0 and later


def blocks(n: int, threads: int) -> int:
    """How many blocks of `threads` threads hold one thread for each of n elements.

    It is 0 for n = 0: there is nothing to launch then, and a grid of 0 is an error.

    >>> blocks(1000, 256), blocks(0, 256)
    (4, 0)
    """
    return -(-n // threads)


def check_grid(kernel: str, grid: Any) -> Extent:
    """The grid as three numbers, or a KernelLaunchError."""
    if type(grid) is int and 1 <= grid <= MOST_BLOCKS[0]:  # most are
        return grid, 1, 1
    nothing = "launch nothing where there is nothing to compute"
    long = "take the long axis first, or let each thread do several elements"
    return _extent(kernel, "grid", grid, "block", MOST_BLOCKS, nothing, long)


def check_block(kernel: str, block: Any, launch_bounds: int | None) -> Extent:
    """The block as three numbers, or a KernelLaunchError."""
    if type(block) is int and 1 <= block <= min(launch_bounds or 1024, MOST_THREADS_OF_A_BLOCK):
        return block, 1, 1
    fewer = "use more blocks"
    x, y, z = extent = _extent(kernel, "block", block, "thread", MOST_THREADS, "", fewer)
    threads = x * y * z
    if threads > MOST_THREADS_OF_A_BLOCK:
        most, way_out = f"{MOST_THREADS_OF_A_BLOCK} threads", f"{fewer} of fewer threads"
    elif launch_bounds is None or threads <= launch_bounds:
        return extent
    else:
        most = f"{launch_bounds} threads, as __launch_bounds__ of the kernel promises"
        way_out = "use a smaller block, or change the bound"
    got = f"{_written(extent)} = {threads}"
    raise KernelLaunchError(kernel, "block", f"at most {most}", got, way_out)


MOST_TRACED = 1024  # blocks of one trace


def check_blocks(kernel: str, grid: Extent, blocks: Any) -> tuple[int, ...]:
    """The numbers of the blocks of a grid that these indices mean, or a KernelLaunchError.

    >>> check_blocks("k", (4, 3, 1), [0, (1, 2)])
    (0, 9)
    """
    expected = f"blocks of the grid {_written(grid)}, as blockIdx names them: (x, y, z)"
    numbers = []
    try:
        for index in blocks:
            axes = tuple(map(operator.index, index if hasattr(index, "__iter__") else (index,)))
            x, y, z = (*axes, 0, 0, 0)[:3] if 1 <= len(axes) <= 3 else (-1, 0, 0)
            if not (0 <= x < grid[0] and 0 <= y < grid[1] and 0 <= z < grid[2]):
                raise KernelLaunchError(kernel, "blocks", expected, repr(index))
            numbers.append(x + grid[0] * (y + grid[1] * z))
    except TypeError:
        raise KernelLaunchError(kernel, "blocks", expected, repr(blocks)) from None
    if not 1 <= len(numbers) <= MOST_TRACED:
        expected = f"1 to {MOST_TRACED} blocks"
        raise KernelLaunchError(kernel, "blocks", expected, len(numbers))
    return tuple(numbers)


def check_shared(kernel: str, shared: Any) -> int:
    """The bytes of dynamic shared memory, or a KernelLaunchError."""
    if type(shared) is int and 0 <= shared <= MOST_SHARED:
        return shared
    expected, way_out = f"from 0 to {MOST_SHARED} bytes", "use a smaller tile"
    try:
        size = operator.index(shared)
    except TypeError:
        expected, way_out, size = "a number of bytes", "an int", -1
    if not 0 <= size <= MOST_SHARED:
        raise KernelLaunchError(kernel, "shared", expected, repr(shared), way_out)
    return size


def _extent(
    kernel: str, argument: str, value: Any, unit: str, most: Extent, if_none: str, if_many: str
) -> Extent:
    """One to three numbers as three, from 1 to `most` on each axis."""
    if type(value) is int:
        x, y, z = extent = (value, 1, 1)
    elif type(value) is tuple and len(value) == 2 and type(value[0]) is type(value[1]) is int:
        x, y, z = extent = (*value, 1)
    else:
        try:
            sizes = list(map(operator.index, value if hasattr(value, "__iter__") else (value,)))
        except TypeError:
            sizes = []
        if not 1 <= len(sizes) <= 3:
            expected = "an int or a tuple of 1 to 3 ints"
            raise KernelLaunchError(kernel, argument, expected, repr(value))
        x, y, z = (*sizes, 1, 1)[:3]
        extent = x, y, z
    if x < 1 or y < 1 or z < 1:
        expected = f"at least 1 {unit} on each axis"
        raise KernelLaunchError(kernel, argument, expected, _written(extent), if_none)
    if x > most[0] or y > most[1] or z > most[2]:
        axis = next(i for i in range(3) if extent[i] > most[i])
        expected = f"at most {most[axis]} {unit}s on axis {'xyz'[axis]}"
        raise KernelLaunchError(kernel, argument, expected, _written(extent), if_many)
    return extent


def _written(extent: Extent) -> str:
    return " x ".join(map(str, extent))
