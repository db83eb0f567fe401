"""Pooling layers."""

from __future__ import annotations

from tinygraph.nn.arguments import require_covered
from tinygraph.nn.module import Module
from tinygraph.ops.max_pool2d import max_pool2d
from tinygraph.shapes import Pair, padding_2d, pair
from tinygraph.tensor import Operand, Tensor, as_tensor


class MaxPool2d(Module):
    """The maximum of each window of images (N, C, H, W): see `tg.max_pool2d`.

    Parameters
    ----------
    kernel_size : int or (vertical, horizontal)
    stride : int or (vertical, horizontal), optional
        The kernel size where it is not given.
    padding : int, (vertical, horizontal) or "same"
    ceil_mode : bool
        Round the number of windows up instead of down.
    strict : bool
        Refuse an image of which the windows leave out pixels at the bottom or right.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.nn.MaxPool2d(2)(tg.ones((1, 8, 27, 27))).shape
    (1, 8, 13, 13)
    >>> tg.nn.MaxPool2d(2, strict=True)(tg.ones((1, 8, 26, 26))).shape
    (1, 8, 13, 13)
    """

    def __init__(
        self, kernel_size: int | Pair, stride: int | Pair | None = None,
        padding: int | Pair | str = 0, *, ceil_mode: bool = False, strict: bool = False,
    ) -> None:  # fmt: skip
        self.kernel_size = pair("MaxPool2d", "kernel_size", kernel_size)
        self.stride = self.kernel_size if stride is None else pair("MaxPool2d", "stride", stride)
        self.padding = padding_2d("MaxPool2d", padding)
        self.ceil_mode = bool(ceil_mode)
        self.strict = bool(strict)

    def forward(self, x: Operand) -> Tensor:
        x = as_tensor(x)
        if self.strict:
            require_covered(
                "MaxPool2d", x.shape, self.kernel_size, self.stride, self.padding,
                ceil_mode=self.ceil_mode,
            )  # fmt: skip
        return max_pool2d(
            x, self.kernel_size, self.stride, self.padding, ceil_mode=self.ceil_mode
        )

    def extra_repr(self) -> str:
        strict = ", strict=True" if self.strict else ""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding!r}, "
            f"ceil_mode={self.ceil_mode}{strict}"
        )
