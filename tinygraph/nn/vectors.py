"""All parameters as one vector and back; with clipping, what PyTorch calls `nn.utils`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tinygraph.base import ShapeError
from tinygraph.base.lazy import lazy
from tinygraph.engine import Operand, Tensor, as_tensor
from tinygraph.ops.shaping.concatenate import concatenate
from tinygraph.ops.shaping.reshape import reshape
from tinygraph.optim.clipping import clip_grad_norm, clip_grad_value
from tinygraph.optim.members import listed, tensors

clip_grad_norm_, clip_grad_value_ = clip_grad_norm, clip_grad_value


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of some tensors, one after the other: a node, through which gradients flow.

    Examples
    --------
    >>> from tinygraph import nn
    >>> nn.utils.parameters_to_vector(nn.Linear(3, 2).parameters()).shape
    (8,)
    """
    members = listed("parameters_to_vector", "parameters", parameters)
    return concatenate([reshape(p, -1) for p in members])


def vector_to_parameters(vec: Operand, parameters: Iterable[Tensor]) -> None:
    """Write the elements of a vector into parameters, as `parameters_to_vector` laid them out.

    Raises
    ------
    ShapeError
        The vector has not as many elements as all of them.  Nothing was changed.
    ArgumentError
        Something is not a Tensor, or an iterator such as `model.parameters()` was used up.

    Examples
    --------
    >>> import tinygraph as tg
    >>> w = tg.Parameter([[0.0, 0.0]])
    >>> tg.nn.utils.vector_to_parameters([1.0, 2.0], [w])
    >>> w.value
    array([[1., 2.]], dtype=float32)
    """
    vector = as_tensor(vec).numpy()
    members = tensors("vector_to_parameters", "parameters", parameters)
    total = sum(p.value.size for p in members)
    if vector.shape != (total,):
        raise ShapeError("vector_to_parameters", "vec", f"({total},)", vector.shape)
    end = 0
    for p in members:
        begin, end = end, end + p.value.size
        part = vector[begin:end]
        p.value = part.reshape(p.shape).astype(p.dtype, copy=False)


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, {}, "nn.utils")
