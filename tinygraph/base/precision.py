"""The precision of float32 products where kernels compute them.

    "highest"   float32 throughout: the default
    "high"      factors rounded to tf32, 10 bits of mantissa; sums in float32
    "medium"    factors rounded to bf16,  7 bits of mantissa; sums in float32

Lower precisions run on tensor cores, of GPUs since sm_80, and on the emulator with the same
rounding; an older GPU computes in float32.  They hold for matmul and linear with more than 16 rows
or columns, and for conv2d with its gradients (algorithm="im2col" with a bias: for the gradients
alone).  On device "cpu" numpy computes in float32 whatever is set.  The names are those of PyTorch.

Source: Markidis et al., "NVIDIA tensor core programmability, performance and precision", IPDPSW
2018.
"""

from __future__ import annotations

from tinygraph.base.errors import ArgumentError

# GEMM_MMA of gemm.cuh: bits of a number.  0: no tensor cores.
TENSOR_CORE_NUMBERS = {"highest": 0, "high": 19, "medium": 16}

_precision = "highest"


def set_float32_matmul_precision(precision: str) -> None:
    """Choose how exactly float32 matrices are multiplied on devices with kernels.

    Parameters
    ----------
    precision : "highest", "high" or "medium"
        float32, tf32 or bf16; see `tinygraph.base.precision`.

    Raises
    ------
    ArgumentError
        For another name.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.set_float32_matmul_precision("high")
    >>> tg.get_float32_matmul_precision()
    'high'
    >>> tg.set_float32_matmul_precision("highest")
    """
    global _precision
    if precision not in TENSOR_CORE_NUMBERS:
        raise ArgumentError(
            "set_float32_matmul_precision",
            "precision",
            f"one of {', '.join(map(repr, TENSOR_CORE_NUMBERS))}",
            repr(precision),
        )
    _precision = precision


def get_float32_matmul_precision() -> str:
    """The precision that `set_float32_matmul_precision` has chosen.

    >>> get_float32_matmul_precision()
    'highest'
    """
    return _precision
