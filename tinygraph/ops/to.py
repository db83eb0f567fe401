"""to: a tensor on another device.

    y  = x, where y lies on the target device
    gx = gy, where gx lies on the device of x

No bit changes on the way.
"""

from __future__ import annotations

from typing import Any

from tinygraph.device import Device, get_device
from tinygraph.frozen import frozen
from tinygraph.memory import Memory
from tinygraph.op import Gradients, Needs, Op
from tinygraph.shapes import Array, Spec
from tinygraph.tensor import Operand, Tensor, as_tensor


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


def to(x: Operand, device: str | Device) -> Tensor:
    """The tensor on that device: `x` itself where it is there already.

    Gradients come back to the device of `x`.  A leaf that shall live elsewhere for good is made
    there, `Tensor(data, device=...)`, or moved with its module, `module.to(device)`.

    Parameters
    ----------
    x : Tensor
        Any shape and dtype.
    device : str
        "cpu" or "emulator".

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

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.Tensor([1.0])
    >>> x.to("cpu") is x, x.to("emulator").device
    (True, device('emulator'))
    """
    node, target = as_tensor(x), get_device(device)
    return node if target is node.device else To(node.device, target)(node)
