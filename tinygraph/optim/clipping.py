"""Gradients of bounded size, between `backward` and `step`.

clip_grad_norm     norm = (sum over all gradients of |g|^p)^(1/p)
                   g = g * min(1, max_norm / (norm + 1e-6))        one factor for all
clip_grad_value    g = min(max(g, -clip_value), clip_value)        element by element
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache, partial
from typing import Any

import numpy as np

from tinygraph.base import ArgumentError, number
from tinygraph.cuda import Kernel, Out
from tinygraph.cuda.reading.source import kernel_file
from tinygraph.engine import Array, Device, Tensor, here
from tinygraph.ops.common import THREADS, sum_over
from tinygraph.ops.leaves.copies import writable
from tinygraph.optim.members import tensors
from tinygraph.optim.parts import blocks_of, by_launches, launch


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> float:
    """Scale all gradients by one factor, in place, so that their common norm is at most `max_norm`.

    Parameters
    ----------
    parameters : iterable of Tensor, or one
        Those without a gradient are passed over.
    max_norm : float
    norm_type : float
        The p of the p-norm, above 0; `math.inf` is the largest absolute value.
    error_if_nonfinite : bool
        Raise where the norm is infinite or NaN, before anything is changed.  If False, gradients
        become 0 or NaN.
    foreach : bool, optional
        Taken, and changes nothing.

    Returns
    -------
    float
        The norm before clipping; 0 where there are no gradients.

    Raises
    ------
    ArgumentError
        `max_norm` is negative, `norm_type` is not above 0, something is not a Tensor, an iterator
        such as `model.parameters()` was used up, or the norm is not finite and `error_if_nonfinite`
        is set.

    References
    ----------
    Pascanu, Mikolov, Bengio, "On the difficulty of training recurrent neural networks", ICML 2013.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> w = tg.Parameter([0.0, 0.0])
    >>> w.grad = np.array([3.0, 4.0], np.float32)
    >>> tg.optim.clip_grad_norm([w], max_norm=1.0)
    5.0
    >>> w.grad.round(4)
    array([0.6, 0.8], dtype=float32)
    """
    kept = tensors("clip_grad_norm", "parameters", parameters)
    clip = partial(_clip_norm, kept, max_norm, norm_type, error_if_nonfinite)
    norm: float = here.top.do(clip, "clip_grad_norm")
    return norm


def _clip_norm(
    parameters: list[Tensor], max_norm: float, norm_type: float, error_if_nonfinite: bool
) -> float:
    limit = number("clip_grad_norm", "max_norm", max_norm, 0, infinite=True)
    power = number("clip_grad_norm", "norm_type", norm_type, above=0, infinite=True)
    gradients = _gradients(parameters)
    norm = _combined(_norms(parameters, power), power)
    if error_if_nonfinite and not math.isfinite(norm):
        raise ArgumentError(
            "clip_grad_norm",
            "gradients",
            f"a finite norm of order {power:g}",
            norm,
            "look for the first NaN or infinity, or pass error_if_nonfinite=False",
        )
    factor = limit / (norm + 1e-6)
    if not factor >= 1:  # NaN too
        for device, arrays in gradients.items():
            _scale(device, arrays, factor)
    return norm


def _norms(parameters: list[Tensor], power: float) -> list[float]:
    """The norms on each device; of parameters that are split among ranks, those of all parts."""
    split = [p for p in parameters if p.grad is not None and getattr(p, "parted", None)]
    alike = [p for p in parameters if p not in set(split)] if split else parameters
    norms = [_device_norm(device, each, power) for device, each in _gradients(alike).items()]
    if split:
        own = [_device_norm(device, each, power) for device, each in _gradients(split).items()]
        norms += split[0].parted.of_all_ranks(_combined(own, power))  # type: ignore[attr-defined]
    return norms


def clip_grad_value(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Cut every element of the gradients to -clip_value ... clip_value, in place.

    Parameters
    ----------
    parameters : iterable of Tensor, or one
        Those without a gradient are passed over.
    clip_value : float
    foreach : bool, optional
        Taken, and changes nothing.

    Raises
    ------
    ArgumentError
        `clip_value` is negative, something is not a Tensor, or an iterator was used up.

    References
    ----------
    ``https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_value_.html``

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> w = tg.Parameter([0.0, 0.0, 0.0])
    >>> w.grad = np.array([3.0, -4.0, 0.5], np.float32)
    >>> tg.optim.clip_grad_value([w], 1.0)
    >>> w.grad
    array([ 1. , -1. ,  0.5], dtype=float32)
    """
    kept = tensors("clip_grad_value", "parameters", parameters)
    clip = partial(_clip_values, kept, clip_value)
    here.top.do(clip, "clip_grad_value")


def _clip_values(parameters: list[Tensor], clip_value: float) -> None:
    limit = number("clip_grad_value", "clip_value", clip_value, 0, infinite=True)
    for device, arrays in _gradients(parameters).items():
        _clip(device, arrays, limit)


def _gradients(parameters: list[Tensor]) -> dict[Device, list[Array]]:
    """The gradients by device."""
    gradients: dict[Device, list[Array]] = {}
    for p in parameters:
        if p.grad is not None:
            p.grad = writable(p.grad)  # one that was set by hand may not be
            gradients.setdefault(p.device, []).append(p.grad)
    return gradients


def _scale(device: Device, gradients: list[Array], factor: float) -> None:
    if device.runs_kernels:
        _change(device, "scale_gradient", gradients, factor)
        return
    with np.errstate(invalid="ignore"):  # 0 * inf
        for grad in gradients:
            np.multiply(grad, factor, out=grad)


def _clip(device: Device, gradients: list[Array], limit: float) -> None:
    if device.runs_kernels:
        _change(device, "clip_gradient", gradients, limit)
        return
    for grad in gradients:
        np.clip(grad, -limit, limit, out=grad)


def _change(device: Device, function: str, gradients: list[Array], bound: float) -> None:
    """Launch a kernel that changes gradients in place, many in a launch."""
    for dtype, members in _by_dtype(gradients).items():
        beyond = abs(bound) > np.finfo(dtype).max  # of the dtype: nothing but infinity is
        for some in by_launches(members):
            rows = [device.contiguous(g) for g in some]  # themselves, unless they were set by hand
            launch("clipping", function, device, [rows], math.inf if beyond else bound)
            for g, row in zip(some, rows, strict=True):
                if row is not g:
                    g[...] = row


def _by_dtype(gradients: list[Array]) -> dict[Any, list[Array]]:
    found: dict[Any, list[Array]] = {}
    for g in gradients:
        found.setdefault(g.dtype, []).append(g)
    return found


def _device_norm(device: Device, gradients: list[Array], power: float) -> float:
    """The p-norm of all gradients on one device."""
    if device.runs_kernels:
        return _norm_by_kernels(device, gradients, power)
    return _combined([_norm(g.ravel(), power) for g in gradients], power)


def _norm_by_kernels(device: Device, gradients: list[Array], power: float) -> float:
    """The same from kernels; the host reads one number, at the end."""
    members = [device.contiguous(g) for g in gradients if g.size]
    if not members:
        return 0.0
    total = blocks_of(members)
    largest, norm = [device.empty((1,), np.float64) for _ in range(2)]
    partials = device.empty((total,), np.float64)
    if power == 2.0 and {g.dtype for g in members} == {np.dtype(np.float32)}:
        _each(device, members, "gradient_squares", (), partials)
        none = device.empty((0,), np.float64)
        _finish("norm_finish")(1, THREADS, partials, none, norm, total, power)
        return float(device.to_numpy(norm)[0])
    _each(device, members, "gradient_largest", (), partials)
    _finish("largest_finish")(1, THREADS, partials, largest, total)
    if power == math.inf:
        return float(device.to_numpy(largest)[0])
    sums = device.empty((total,), np.float64)
    _each(device, members, "gradient_powers", (largest,), sums, power)
    _finish("norm_finish")(1, THREADS, sums, largest, norm, total, power)
    return float(device.to_numpy(norm)[0])


def _each(
    device: Device,
    gradients: list[Array],
    function: str,
    inputs: tuple[Array, ...],
    partials: Array,
    *numbers: float,
) -> None:
    """Launch a kernel for many gradients at a time; a block writes one element of `partials`."""
    first = 0
    for members in _by_dtype(gradients).values():
        for some in by_launches(members):
            last = first + blocks_of(some)
            launch(
                "clipping", function, device, [some], *inputs, Out(partials[first:last]), *numbers
            )
            first = last


@cache
def _finish(function: str) -> Kernel:
    """A kernel that puts partial results together; they are doubles, whatever the gradients are."""
    return Kernel(kernel_file("clipping.cu"), function)


@np.errstate(all="ignore")  # inf and nan are results, not accidents
def _norm(flat: Array, power: float) -> float:
    """The p-norm of one gradient."""
    if not flat.size:
        return 0.0
    if power == 2.0:
        square = sum_over((0,), np.empty(1, flat.dtype), flat, flat)  # no such array on the way
        norm = math.sqrt(float(square[0]))
        return norm if math.isfinite(norm) and norm > 1e-15 else _scaled_norm(flat, power)
    return float(np.max(np.abs(flat))) if power == math.inf else _scaled_norm(flat, power)


def _scaled_norm(flat: Array, power: float) -> float:
    """The p-norm of numbers whose powers over- or underflow: the largest is taken out first."""
    largest = float(np.max(np.abs(flat)))
    if not 0 < largest < math.inf:
        return largest
    return largest * float(np.sum((np.abs(flat) / largest) ** power)) ** (1 / power)


def _combined(norms: list[float], power: float) -> float:
    """The norm of all from the norms of each."""
    return _norm(np.array(norms), power)
