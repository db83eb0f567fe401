"""Parameter and Buffer: leaves that a module keeps, with one shape and one dtype for life."""

from __future__ import annotations

from typing import Any

from tinygraph.base import above
from tinygraph.base.incoming import as_numbers
from tinygraph.engine.device import Device
from tinygraph.engine.spec import Array, Shape
from tinygraph.engine.tensor import Tensor
from tinygraph.engine.writes import Writes


class Kept(Tensor):
    """A leaf whose `value` may be replaced by an array of its shape and dtype, and no other."""

    __slots__ = ()

    @property
    def parted(self) -> Any:
        """How it is dealt out to ranks (distributed/split.py); None where each has all of it."""
        return None

    @property
    def whole_shape(self) -> Shape:
        """The shape as it is saved."""
        return self.shape

    def whole_of(self, array: Array) -> Array:
        """The whole of what each rank has a part of, as the value is: what is saved."""
        return array

    def part_of(self, array: Array) -> Array:
        """This rank's part of a whole."""
        return array

    def become(self, device: Device, dtype: Any = None) -> None:
        """Lie on another device, or be of another float dtype, gradient included."""
        value, grad = self.numpy(), self.grad
        kind = dtype if dtype is not None and value.dtype.kind == "f" else value.dtype
        grad = None if grad is None else self.device.to_numpy(grad)
        self.device = device
        super().__setattr__("value", device.from_numpy(value.astype(kind, copy=False)))
        self.grad = None if grad is None else device.from_numpy(grad.astype(kind, copy=False))
        Writes.note(self)

    def __setattr__(self, name: str, new: Any) -> None:
        if name == "value" and hasattr(self, "value"):
            new = above.kept(self, new)
            Writes.note(self)
        super().__setattr__(name, new)

    def __deepcopy__(self, memo: dict[int, Any]) -> Kept:
        """A leaf of its own with a copy of the value, as `copy.deepcopy(module)` needs it."""
        made = memo[id(self)] = type(self).__new__(type(self))
        made._begin(self.device.copy(self.value), self.device, self.name)
        made.requires_grad = self.requires_grad
        made.grad = None if self.grad is None else self.device.copy(self.grad)
        return made


class Parameter(Kept):
    """A leaf that an optimiser changes: it requires a gradient unless told otherwise.

    `p.value = array` replaces its value by one of the same shape and dtype.

    Examples
    --------
    >>> import tinygraph as tg
    >>> w = tg.Parameter([[1.0, 2.0]], name="weight")
    >>> w.requires_grad
    True
    """

    __slots__ = ()

    def __init__(
        self,
        data: Any,
        requires_grad: bool = True,
        dtype: Any = None,
        device: str | Device | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(data, requires_grad, dtype, device, name)


class Buffer(Kept):
    """A leaf that belongs to a module's state but that no optimiser changes: running statistics.

    One that is not `persistent` moves with the module, but is not part of its `state_dict`.

    Examples
    --------
    >>> from tinygraph import nn
    >>> layer = nn.Module()
    >>> layer.running_mean = nn.Buffer([0.0, 0.0])
    >>> list(layer.state_dict()), list(layer.parameters())
    (['running_mean'], [])
    """

    __slots__ = ("persistent",)

    def __init__(
        self,
        data: Any,
        dtype: Any = None,
        device: str | Device | None = None,
        name: str | None = None,
        persistent: bool = True,
    ) -> None:
        if device is None and isinstance(data, Tensor):
            device = data.device
        array = as_numbers(data, dtype, None)  # as `tg.tensor` takes it: integers stay integers
        super().__init__(array, False, None, device, name)
        self.persistent = bool(persistent)

    def __deepcopy__(self, memo: dict[int, Any]) -> Kept:
        made = super().__deepcopy__(memo)
        made.persistent = self.persistent
        return made
