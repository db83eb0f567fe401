"""An op's bodies called by hand, without a node: `memory` is what they take first."""

from __future__ import annotations

from tinygraph.base import ArgumentError
from tinygraph.engine import Device, Memory, eager_memory, get_device


def memory(*needs: bool, device: str | Device = "cpu") -> Memory:
    """The `mem` that an op gets from an eager node, to call its forward and backward by hand.

    Parameters
    ----------
    *needs : bool
        For each input, whether its gradient is wanted.  Without one an op saves nothing.
    device : str or device
        Where arrays are made: "emulator" for `forward_kernel` and `backward_kernel`.

    Raises
    ------
    ArgumentError
        Something else than True or False, or there is no such device.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> class Square(tg.Op):
    ...     def forward(self, mem, x):
    ...         return np.multiply(x, x, out=mem.empty(x.shape, x.dtype)), x
    ...     def backward(self, mem, grad, saved, needs):
    ...         return (2 * grad * saved,)
    >>> op, mem = Square(), tg.testing.memory(True)
    >>> y, saved = op.forward(mem, np.array([3.0]))
    >>> y, op.backward(mem, np.array([10.0]), saved, mem.needs)
    (array([9.]), (array([60.]),))
    """
    if not all(isinstance(needed, bool) for needed in needs):
        expected = "True or False for each input"
        raise ArgumentError("memory", "needs", expected, repr(needs), "memory(True, False)")
    return eager_memory(needs, get_device(device))
