"""to: a tensor on another device."""

from __future__ import annotations

from tinygraph.device import Device, get_device
from tinygraph.errors import DeviceError, explain
from tinygraph.tensor import Operand, Tensor, as_tensor


def to(x: Operand, device: str | Device) -> Tensor:
    """The tensor on that device: `x` itself where it is there already.

    Parameters
    ----------
    x : Tensor
        Any shape and dtype.
    device : str
        "cpu".

    Returns
    -------
    Tensor
        `x` itself.

    Raises
    ------
    DeviceError
        The device is not available, or `x` would have to be copied, which no op does yet.
    ArgumentError
        There is no device of that name.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.Tensor([1.0])
    >>> x.to("cpu") is x
    True
    """
    node, target = as_tensor(x), get_device(device)
    if target is not node.device:
        raise DeviceError(explain("to", "device", f"{node.device}, where x lies", target))
    return node
