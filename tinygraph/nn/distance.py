"""Layers that compare two arrays of vectors."""

from __future__ import annotations

from typing import ClassVar

from tinygraph.base import number
from tinygraph.engine import Operand, Tensor
from tinygraph.nn.module import Module
from tinygraph.ops.common.spelling import spelled
from tinygraph.ops.products.cosine_similarity import cosine_similarity


class CosineSimilarity(Module):
    """The cosine of the angle between vectors: see `tg.cosine_similarity`.

    Parameters
    ----------
    axis : int
        The axis of the vectors.
    eps : float
        Shorter vectors count as of this length.
    """

    _settings: ClassVar[tuple[str, ...]] = ("axis", "eps")

    @spelled  # as `dim` too
    def __init__(self, axis: int = 1, eps: float = 1e-8) -> None:
        self.axis = axis
        self.eps = number("CosineSimilarity", "eps", eps, 0)

    def forward(self, x1: Operand, x2: Operand) -> Tensor:
        return cosine_similarity(x1, x2, self.axis, self.eps)
