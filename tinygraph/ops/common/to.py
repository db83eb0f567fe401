"""to: a tensor on another device, or in another dtype (cast.py).

    y  = x, where y lies on the target device
    gx = gy, where gx lies on the device of x

No bit changes on the way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import frozen
from tinygraph.base.dtypes import as_dtype
from tinygraph.engine import Array, Gradients, Memory, Needs, Op, Operand, Spec, Tensor, as_tensor
from tinygraph.engine.device import Device, get_device
from tinygraph.ops.common.cast import Cast


@frozen
class To(Op):
    source: Device
    target: Device

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        return self.target.from_numpy(self.source.to_numpy(x)), None

    def backward(self, mem: Memory, grad: Array, saved: Any, needs: Needs) -> Gradients:
        return (self.source.from_numpy(self.target.to_numpy(grad)),)

    forward_kernel, backward_kernel = forward, backward  # a copy at most: there is no kernel

    def output_device(self, device: Device) -> Device:
        return self.target

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map"


def to(
    x: Operand,
    device: Any = None,
    dtype: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
) -> Tensor:
    """The tensor on another device, in another dtype or both: `x` itself where nothing changes.

    Gradients come back to the device of `x` and in its dtype.  A leaf that shall live elsewhere for
    good is made there, `Tensor(data, device=...)`, or moved with its module, `module.to(device)`.

    Parameters
    ----------
    x : Tensor
        Any shape and dtype.
    device : str, dtype or Tensor, optional
        "cpu", "emulator" or "cuda".  A dtype may stand in its place, `x.to(tg.float64)`; a Tensor
        stands for its own device and dtype.
    dtype : dtype, optional
        By default that of `x`.
    non_blocking : bool
        Changes nothing: launches do not wait for one another.
    copy : bool
        Make a new node in any case, in memory of its own.

    Returns
    -------
    Tensor
        `x` itself, or a new node.  Between cpu and emulator, which are the same memory, its value
        is a view of that of `x` where the layout allows.

    Raises
    ------
    DeviceError
        The device is not available.
    ArgumentError
        There is no device of that name.
    DtypeError
        `dtype` is none that a Tensor can have.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.Tensor([1.0])
    >>> x.to("cpu") is x, x.to("emulator").device, x.to(tg.float64).dtype
    (True, device('emulator'), dtype('float64'))
    """
    node, place = as_tensor(x), device
    if isinstance(device, Tensor):
        place, dtype = device.device, device.dtype
    elif isinstance(device, (np.dtype, type)):
        place, dtype = None, device
    kind = node.dtype if dtype is None else as_dtype("to", dtype)
    target = node.device if place is None else get_device(place)
    made = Cast(kind)(node) if copy or kind != node.dtype else node
    return made if target is made.device else To(made.device, target)(made)
