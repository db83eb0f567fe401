"""A few GPUs by the figures of their data sheets: what a prediction is made from.

Peaks are without sparsity, at the boost clock.  A share of them is what a kernel can reach: memory
gives about nine tenths of its bandwidth to a plain copy, and power limits lower the clock under
load.  tf32 and bf16 are those of tensor cores with float32 sums; 0 where a GPU has none.

Sources, all by NVIDIA: the data sheets "H100 Tensor Core GPU" and "H200 Tensor Core GPU" (SXM),
"A100 Tensor Core GPU" (SXM, 80 GB), "A10 Tensor Core GPU", "L4 Tensor Core GPU" and "T4"; for the
RTX 4090 the white paper "NVIDIA ADA GPU Architecture", appendix A.  Multiprocessors and clocks: the
white papers of the architectures Hopper, Ampere, Ada and Turing.

The figures of the RTX 4090 were not checked against that white paper, which was not at hand.  They
agree with listings by others, and fp32 with its 128 units a multiprocessor at that clock.
"""

from __future__ import annotations

from dataclasses import dataclass

from tinygraph.base import ArgumentError, nearest

SCHEDULERS = 4  # of a multiprocessor; each issues one instruction of one warp a clock
BYTES_A_CLOCK = 64  # between a multiprocessor and the L2 cache


@dataclass(frozen=True)
class Gpu:
    """One GPU; bytes and operations a second.

    Attributes
    ----------
    name, arch : str
    multiprocessors : int
    clock : float
        Hertz.
    bandwidth : float
    fp32, fp64, tf32, bf16 : float
        A multiply-add is two operations.
    source : str
        The document.
    """

    name: str
    arch: str
    multiprocessors: int
    clock: float
    bandwidth: float
    fp32: float
    fp64: float
    tf32: float
    bf16: float
    source: str

    @property
    def issue_rate(self) -> float:
        """Instructions of warps a second.

        >>> f"{find('h200').issue_rate:.3g}"
        '1.05e+12'
        """
        return self.multiprocessors * SCHEDULERS * self.clock


def _sheet(
    source: str, name: str, arch: str, multiprocessors: int, giga_hertz: float, giga_bytes: float,
    *tera: float,
) -> Gpu:  # fmt: skip
    fp32, fp64, tf32, bf16 = (rate * 1e12 for rate in tera)
    clock, bandwidth = giga_hertz * 1e9, giga_bytes * 1e9
    return Gpu(name, arch, multiprocessors, clock, bandwidth, fp32, fp64, tf32, bf16, source)


GPUS = {
    gpu.name: gpu
    for gpu in (
        # name, arch, SMs, GHz, GB/s, then tera-operations: fp32, fp64, tf32, bf16
        _sheet("H200 data sheet", "h200", "sm_90", 132, 1.98, 4800, 67.0, 34.0, 494.7, 989.4),
        _sheet("H100 data sheet", "h100", "sm_90", 132, 1.98, 3350, 67.0, 34.0, 494.7, 989.4),
        _sheet("A100 data sheet", "a100", "sm_80", 108, 1.41, 2039, 19.5, 9.7, 156.0, 312.0),
        _sheet("A10 data sheet", "a10", "sm_86", 72, 1.695, 600, 31.2, 0.98, 62.5, 125.0),
        _sheet("L4 data sheet", "l4", "sm_89", 58, 2.04, 300, 30.3, 0.47, 60.0, 121.0),
        _sheet("Ada white paper", "rtx-4090", "sm_89", 128, 2.52, 1008, 82.6, 1.29, 82.6, 165.2),
        _sheet("T4 data sheet", "t4", "sm_75", 40, 1.59, 320, 8.1, 0.25, 0.0, 0.0),
    )
}


def find(name: str | Gpu) -> Gpu:
    """A GPU by its name, or an error that names the known ones.

    >>> find("T4").multiprocessors
    40
    """
    if isinstance(name, Gpu):
        return name
    key = str(name).lower().replace(" ", "-").replace("_", "-")
    if key not in GPUS:
        known = f"one of {', '.join(GPUS)}"
        raise ArgumentError("prediction", "gpu", known, repr(name), nearest(key, GPUS))
    return GPUS[key]
