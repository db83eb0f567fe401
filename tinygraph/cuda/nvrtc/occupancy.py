"""How many blocks of a kernel fit on one multiprocessor (SM) at the same time: arithmetic, no GPU.

An SM holds blocks until one of its four stores is full:

    warps      resident warps:   warps of a block = ceil(threads / 32)
    blocks     resident blocks
    registers  64 Ki of 32 bits, a quarter in each of four partitions; a warp takes
               ceil(32 * registers of a thread, 256) from one partition
    shared     bytes a block = ceil(static + dynamic + reserve, granularity)

    occupancy = resident warps / warps that the SM could hold

The reserve is the 1 KiB that CUDA itself takes for every block from compute capability 8.0 on.
Low occupancy is not slow in itself: a register-tiled GEMM runs best at 25 %.  It says how many
other warps an SM can turn to while one waits for memory.

Sources: CUDA C++ Programming Guide, "Compute Capabilities", technical specifications; the tuning
guides for Turing, Ampere, Ada, Hopper and Blackwell (shared memory, reserve); allocation
granularities as in NVIDIA's cuda_occupancy.h.
"""

from __future__ import annotations

from dataclasses import dataclass

from tinygraph.base import ArgumentError, nearest

WARP = 32
MAX_BLOCK = 1024  # threads in a block
PARTITIONS = 4  # of an SM, each with its own registers and warp scheduler
REGISTERS = 65536  # of an SM, and at most of a block
REGISTER_GRANULE = 256  # registers that a warp gets at once
MAX_REGISTERS = 255  # of a thread


@dataclass(frozen=True)
class Multiprocessor:
    """The limits of one SM that differ between architectures; shared memory in KiB."""

    warps: int
    blocks: int
    shared: int
    shared_of_block: int  # with cudaFuncAttributeMaxDynamicSharedMemorySize; 48 KiB without
    reserve: int
    shared_granule: int  # bytes


MULTIPROCESSORS = {
    "sm_75": Multiprocessor(32, 16, 64, 64, 0, 256),  # Turing: T4, RTX 20
    "sm_80": Multiprocessor(64, 32, 164, 163, 1, 128),  # Ampere: A100
    "sm_86": Multiprocessor(48, 16, 100, 99, 1, 128),  # Ampere: A10, RTX 30
    "sm_89": Multiprocessor(48, 24, 100, 99, 1, 128),  # Ada: L4, L40, RTX 40
    "sm_90": Multiprocessor(64, 32, 228, 227, 1, 128),  # Hopper: H100, H200
    "sm_100": Multiprocessor(64, 32, 228, 227, 1, 128),  # Blackwell: B100, B200
    "sm_120": Multiprocessor(48, 24, 100, 99, 1, 128),  # Blackwell: RTX 50
}


@dataclass(frozen=True)
class Occupancy:
    """What one SM holds of a kernel at once."""

    active_blocks: int  # 0 if not even one fits: the launch would fail
    active_warps: int
    share: float  # active_warps / the warps that the SM could hold
    limited_by: tuple[str, ...]  # the full stores: "warps", "blocks", "registers", "shared"


def occupancy(arch: str, threads: int, registers: int, shared: int) -> Occupancy:
    """The blocks of a kernel that one SM holds at once.

    Parameters
    ----------
    arch : str
        "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100" or "sm_120".
    threads : int
        Threads in a block, 1 to 1024.
    registers : int
        Registers of a thread, 0 to 255.
    shared : int
        Bytes of shared memory of a block, static and dynamic together.

    Raises
    ------
    ArgumentError
        An unknown architecture, or a number out of its range.

    Examples
    --------
    >>> occupancy("sm_90", threads=128, registers=37, shared=0)
    Occupancy(active_blocks=12, active_warps=48, share=0.75, limited_by=('registers',))

    Notes
    -----
    Named barriers, which a kernel can run out of on sm_90 and later, are not counted.
    """
    sm = multiprocessor(arch)
    for argument, value, low, high in (
        ("threads", threads, 1, MAX_BLOCK),
        ("registers", registers, 0, MAX_REGISTERS),
        ("shared", shared, 0, 2**31 - 1),
    ):
        if not low <= value <= high:
            raise ArgumentError("occupancy", argument, f"{low} to {high}", value)
    warps = -(-threads // WARP)
    blocks = {
        "registers": _blocks_by_registers(warps, registers),
        "shared": _blocks_by_shared(sm, shared),
        "warps": sm.warps // warps,
        "blocks": sm.blocks,
    }
    active = min(fitting for fitting in blocks.values() if fitting is not None)
    limited_by = tuple(store for store, fitting in blocks.items() if fitting == active)
    return Occupancy(active, active * warps, active * warps / sm.warps, limited_by)


def multiprocessor(arch: str) -> Multiprocessor:
    """The limits of an architecture, or an error that names the known ones.

    >>> multiprocessor("sm_90").warps
    64
    """
    if arch not in MULTIPROCESSORS:
        known = f"one of {', '.join(MULTIPROCESSORS)}"
        hint = nearest(arch, MULTIPROCESSORS)
        raise ArgumentError("compute capability", "arch", known, repr(arch), hint)
    return MULTIPROCESSORS[arch]


def largest_block(registers: int) -> int:
    """Threads of the largest block that the registers of an SM allow.

    The hardware checks a block as if its warps were spread evenly over the four partitions.

    >>> largest_block(registers=64), largest_block(registers=96), largest_block(registers=255)
    (1024, 640, 256)
    """
    if registers == 0:
        return MAX_BLOCK
    warps = REGISTERS // _registers_of_warp(registers)
    return min(MAX_BLOCK, warps // PARTITIONS * PARTITIONS * WARP)


def _registers_of_warp(registers: int) -> int:
    return _round_up(registers * WARP, REGISTER_GRANULE)


def _blocks_by_registers(warps: int, registers: int) -> int | None:
    """Blocks that the registers allow; None without a limit, 0 if a block is too large."""
    if registers == 0:
        return None
    if warps * WARP > largest_block(registers):
        return 0
    of_partition = REGISTERS // PARTITIONS // _registers_of_warp(registers)
    return of_partition * PARTITIONS // warps


def _blocks_by_shared(sm: Multiprocessor, shared: int) -> int | None:
    if shared > sm.shared_of_block * 1024:
        return 0
    of_block = _round_up(shared + sm.reserve * 1024, sm.shared_granule)
    return sm.shared * 1024 // of_block if of_block else None


def _round_up(number: int, granule: int) -> int:
    return -(-number // granule) * granule
