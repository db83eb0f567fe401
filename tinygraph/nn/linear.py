"""The linear layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import whole
from tinygraph.engine import Parameter, Tensor
from tinygraph.nn.init import default_affine_
from tinygraph.nn.module import Module
from tinygraph.ops.products.linear import linear


class Linear(Module):
    """Affine map of the last axis, `x @ weight.T + bias`: see `tg.linear`.

    Parameters
    ----------
    in_features, out_features : int
    bias : bool
    dtype : dtype
        Of the parameters; the input must have it too.

    Attributes
    ----------
    weight : Parameter (O, I)
        Uniform on +-1 / sqrt(I) at first.
    bias : Parameter (O,) or None
        Likewise.

    Examples
    --------
    >>> import tinygraph as tg
    >>> layer = tg.nn.Linear(3, 2)
    >>> layer
    Linear(in_features=3, out_features=2, bias=True)
    >>> layer(tg.ones((5, 3))).shape
    (5, 2)
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, *, dtype: Any = np.float32
    ) -> None:
        self.in_features = whole("Linear", "in_features", in_features)
        self.out_features = whole("Linear", "out_features", out_features)
        shape = (self.out_features, self.in_features)
        self.weight = Parameter(np.empty(shape, dtype), name="weight")
        self.bias = Parameter(np.empty(shape[:1], dtype), name="bias") if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        default_affine_(self.weight, self.bias)

    def forward(self, x: Any) -> Tensor:
        return linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        bias = self.bias is not None
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={bias}"
