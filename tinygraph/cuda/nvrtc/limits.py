"""What a kernel leaves a launch of an architecture: threads of a block, and shared memory.

Source: CUDA C++ Programming Guide, "Compute Capabilities", technical specifications.
"""

from __future__ import annotations

from dataclasses import dataclass

from tinygraph.base import KernelLaunchError
from tinygraph.cuda.nvrtc.compiling import Compiled, registers_and_shared
from tinygraph.cuda.nvrtc.occupancy import MAX_BLOCK, MULTIPROCESSORS, REGISTERS, largest_block

UNKNOWN = 227 * 1024  # bytes, of an architecture that is not in the table: the driver knows


@dataclass(frozen=True)
class Limits:
    """The largest launch of one kernel on one architecture.

    Attributes
    ----------
    arch : str
        As in "sm_90".
    registers : int
        Of a thread; 0 where the driver is going to compile.
    threads : int
        The largest block that the registers allow.
    static : int
        Bytes of shared memory that every block takes.
    dynamic : int
        Bytes that a launch may add.
    """

    arch: str
    registers: int
    threads: int
    static: int
    dynamic: int

    def check(self, kernel: str, block: tuple[int, int, int], shared: int) -> None:
        """Raise a KernelLaunchError where a block does not fit.

        >>> limits = Limits("sm_89", registers=128, threads=512, static=1024, dynamic=100352)
        >>> limits.check("k", (256, 1, 1), 65536)
        >>> limits.check("k", (32, 32, 1), 0)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        tinygraph.errors.KernelLaunchError: k: block: expected at most 512 threads of 128 ...
        """
        x, y, z = block
        if x * y * z > self.threads:
            raise KernelLaunchError(
                kernel,
                "block",
                f"at most {self.threads} threads of {self.registers} registers ({self.arch}: "
                f"{REGISTERS} for a block)",
                f"{x} x {y} x {z} = {x * y * z}",
                f"a smaller block, or __launch_bounds__({x * y * z}), for which the compiler makes "
                "do with fewer registers",
            )
        if shared > self.dynamic:
            raise KernelLaunchError(
                kernel,
                "shared",
                f"at most {self.dynamic} bytes ({self.arch}: {self.dynamic + self.static} for a "
                f"block, of which the kernel's own arrays take {self.static})",
                shared,
                "use a smaller tile",
            )


def limits(compiled: Compiled, arch: str) -> Limits:
    """What a compiled kernel leaves a launch on a GPU of that architecture.

    >>> from tinygraph.cuda.nvrtc import compile
    >>> from tinygraph.cuda.reading.source import Source
    >>> text = "__global__ void one(int* y) { __shared__ int s[32]; s[y[0]] = 1; y[1] = s[y[2]]; }"
    >>> (compiled,) = compile(Source.read(text), ["one"], "sm_75")
    >>> found = limits(compiled, "sm_75")
    >>> found.threads, found.static, found.dynamic
    (1024, 128, 65408)
    """
    sm = MULTIPROCESSORS.get(arch)
    of_block = sm.shared_of_block * 1024 if sm else UNKNOWN
    registers, static = registers_and_shared(compiled)
    bound = compiled.launch_bound or MAX_BLOCK
    return Limits(arch, registers, min(bound, largest_block(registers)), static, of_block - static)
