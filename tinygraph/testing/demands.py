"""What the demands of a contract are made of: sentences, gradients, tiles of a batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinygraph.engine import CPU, Array, Device, Memory, Op, Shape, Tensor, Words, uniform


def demand(holds: object, otherwise: str) -> None:
    """Raise AssertionError with a sentence, also under `python -O`."""
    if not holds:
        raise AssertionError(otherwise)


def grad_of(node: Tensor) -> Array:
    """A node's gradient on the host; AssertionError where it was given none."""
    if node.grad is None:
        raise AssertionError("an input that requires a gradient was given none")
    return node.device.to_numpy(node.grad)


class TileMemory(Memory):
    """What a plan gives the op on a tile: streams that go on at the tile's first sample."""

    __slots__ = ("first", "stream")

    def __init__(self, device: Device, needs: tuple[bool, ...], first: int) -> None:
        super().__init__(device, needs)
        self.first, self.stream = first, 0

    def random(self, shape: Shape, dtype: Any = np.float32) -> Array:
        seed, stream, first, _ = self.words(math.prod(shape[1:]))
        return uniform(shape, dtype, seed, stream, first=first)

    def words(self, of_row: int = 1, rows: int | None = None) -> Words:
        self.stream += 1
        return Words(0, self.stream, self.first * of_row)


def samples_of(inputs: Sequence[Tensor], carries: Sequence[bool]) -> int:
    """How many samples the inputs have that carry any."""
    return next(len(x.value) for x, carried in zip(inputs, carries, strict=True) if carried)


def on_tile(op: Op, inputs: Sequence[Tensor], carries: Sequence[bool], tile: slice) -> Array:
    """The value of an op on a slice of the samples."""
    arrays = [x.value[tile] if c else x.value for x, c in zip(inputs, carries, strict=True)]
    mem = TileMemory(CPU, (False,) * len(arrays), tile.start)
    with np.errstate(all="ignore"):
        return np.asarray(op.forward(mem, *[np.array(a) for a in arrays])[0])


def divisor_on_tile(
    op: Op, inputs: Sequence[Tensor], carries: Sequence[bool], tile: slice
) -> float:
    """What a mean over some of the samples is divided by."""
    given = [x.value[tile] if c else x.value for x, c in zip(inputs, carries, strict=True)]
    found = op.divisor(*given)
    if found is None:
        raise AssertionError(f"{op.name}: no divisor though all inputs are known")
    return found


def on_device(argument: Any, device: str | Device) -> Any:
    """An array, or each of several, as a leaf on a device; anything else as it is."""
    if isinstance(argument, np.ndarray) and argument.dtype.kind in "biuf":
        return Tensor(argument, device=device)
    if isinstance(argument, (list, tuple)) and any(isinstance(a, np.ndarray) for a in argument):
        return [on_device(a, device) for a in argument]
    return argument.to(device) if isinstance(argument, Tensor) else argument


def arrays_in(saved: Any) -> list[Array]:
    """The arrays that forward handed on."""
    if isinstance(saved, (tuple, list)):
        return [a for part in saved for a in arrays_in(part)]
    return [saved] if isinstance(saved, np.ndarray) else []


def exactly_equal(got: Array, expected: Any, what: str) -> None:
    wanted = np.asarray(expected, np.float64)
    np.testing.assert_array_equal(got, wanted, f"{what} differs from what was agreed")
    zeros = wanted == 0
    np.testing.assert_array_equal(
        np.signbit(got[zeros]), np.signbit(wanted[zeros]), f"{what}: the sign of a zero"
    )
