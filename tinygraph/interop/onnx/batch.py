"""A batch of any size: what a file says, where it has been drafted for batches of 2, 3 and 5.

    draft for 2 samples, draft for 3      the same operators, or the batch has no open size
    a constant that is the same           stays
    a Reshape with one other size         has -1 there
    another number, a + k * samples       is computed in the file, from the size of an input
    an array of one number throughout     ConstantOfShape, of such a shape
    anything else                         refused: the network is one for this number of samples

The draft for 5 samples has to follow from the other two: so no number is taken for the batch that
happens to be as large.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from tinygraph.base import OnnxError, TinygraphError
from tinygraph.engine import Array, Spec
from tinygraph.interop.onnx.drafts import Draft, draft
from tinygraph.interop.onnx.library import onnx
from tinygraph.interop.onnx.tracing import Call

SIZES = (2, 3, 5)
NAME = "N"  # of the open size, in the shapes of inputs and outputs
FIXED = "batch=False fixes the sizes of the example"

Sizes = tuple[int | str | None, ...]  # a shape in a file: a name is an open size


def carrying(call: Call, batch: bool | Collection[str]) -> list[str]:
    """The inputs whose axis 0 is the batch."""
    able = [name for name, array in call.arrays.items() if array.ndim]
    if isinstance(batch, bool):
        return able if batch else []
    names = [batch] if isinstance(batch, str) else list(batch)
    for name in names:
        if name not in able:
            expected = f"True, False, or some of the inputs {able}"
            raise OnnxError("tg.onnx.save", "batch", expected, repr(name))
    return names


def open_draft(call: Call, names: list[str], outputs: Mapping[str, str]) -> Draft:
    """The draft of a call for any number of samples, in its axes 0; sizes are those for 2."""
    drafts = [_of_size(call, names, size, outputs) for size in SIZES]
    first = drafts[0]
    for size, other in zip(SIZES[1:], drafts[1:], strict=True):
        _require_same_operators(first, other, size)
    source = names[0]
    for name in list(first.constants):
        arrays = [d.constants[name] for d in drafts]
        if not all(_equal(arrays[0], a) for a in arrays[1:]):
            _follow(first, name, arrays, source)
    first.writer.drop_unread(first.outputs)
    first.writer.share_constants(first.state)
    first.inputs = {n: _open([d.inputs[n] for d in drafts]) for n in first.inputs}
    first.outputs = {n: _open([d.outputs[n] for d in drafts]) for n in first.outputs}
    return first


def _of_size(call: Call, names: list[str], size: int, outputs: Mapping[str, str]) -> Draft:
    """The draft for so many samples, which are those of the example, again and again."""
    arrays = dict(call.arrays)
    for name in names:
        if not len(arrays[name]):
            expected = "at least one sample"
            raise OnnxError("tg.onnx.save", name, expected, f"shape {arrays[name].shape}")
        arrays[name] = arrays[name][np.arange(size) % len(arrays[name])]
    try:
        traced = call.run(arrays)
    except OnnxError:
        raise
    except TinygraphError as error:
        expected = "what any number of samples can be given to"
        got = f"an error with {size} of them: {error}"
        raise OnnxError("tg.onnx.save", "batch", expected, got, FIXED) from error
    return draft(traced, outputs)


def _require_same_operators(first: Draft, other: Draft, size: int) -> None:
    same = len(first.nodes) == len(other.nodes) and first.constants.keys() == other.constants.keys()
    for a, b in zip(first.nodes, other.nodes, strict=False):
        if a != b:
            same = False
            break
    if not same:
        expected = "a network that does the same for any number of samples"
        got = f"operators for {SIZES[0]} samples that are not those for {size}"
        raise OnnxError("tg.onnx.save", "batch", expected, got, FIXED)


def _equal(a: Array, b: Array) -> bool:
    return a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


# ---- constants that follow the batch ------------------------------------------------------------


def _follow(made: Draft, name: str, arrays: list[Array], source: str) -> None:
    """Let a constant of a draft be computed from the number of samples."""
    users = [n for n in made.nodes if name in n.input]
    only_shapes = all(n.op_type == "Reshape" and n.input[1] == name for n in users)
    if arrays[0].shape == arrays[1].shape == arrays[2].shape:
        line = _line(name, arrays)
        moving = np.flatnonzero(line[1])
        fixed = np.delete(arrays[0], moving) if arrays[0].ndim == 1 else arrays[0]
        if only_shapes and moving.size == 1 and not (fixed <= 0).any():
            made.constants[name] = np.where(line[1] != 0, -1, arrays[0])
            return
        nodes = _computed(made, name, line, source)
    elif all(_is_one_number(a, arrays[0]) for a in arrays) and name not in made.state:
        shapes = [np.array(a.shape, np.int64) for a in arrays]
        shape = made.writer.fresh("shape")
        nodes = _computed(made, shape, _line(name, shapes), source)
        value = onnx.numpy_helper.from_array(np.resize(arrays[0], 1))
        filled = onnx.helper.make_node("ConstantOfShape", [shape], [name], name, value=value)
        nodes.append(filled)
    else:
        raise _refused(name, arrays)
    made.constants.pop(name, None)
    made.writer.nodes[:0] = nodes


def _is_one_number(a: Array, like: Array) -> bool:
    """Whether an array holds one number throughout, the one that another one begins with."""
    return a.ndim == like.ndim and bool((a == np.resize(like, 1)).all())


def _line(name: str, arrays: list[Array]) -> tuple[Array, Array]:
    """(a, k), so that a constant is a + k * samples for all sizes, or an error."""
    two, three, five = arrays
    if two.dtype.kind == "b" or len({a.shape for a in arrays}) > 1:
        raise _refused(name, arrays)
    exact = np.float64 if two.dtype.kind == "f" else np.int64
    slope = three.astype(exact) - two.astype(exact)
    start = two.astype(exact) - 2 * slope
    if not np.allclose(start + 5 * slope, five.astype(exact), rtol=1e-6, atol=0):
        raise _refused(name, arrays)
    return start.astype(two.dtype), slope.astype(two.dtype)


def _refused(name: str, arrays: list[Array]) -> OnnxError:
    shown = [f"{a.tolist()}"[:40] if a.size < 5 else f"shape {a.shape}" for a in arrays]
    samples = ", ".join(f"{text} for {n}" for n, text in zip(SIZES, shown, strict=True))
    expected = "constants that follow from the number of samples"
    return OnnxError("tg.onnx.save", f"batch: {name}", expected, f"{samples} samples", FIXED)


def _computed(made: Draft, name: str, line: tuple[Array, Array], source: str) -> list[Any]:
    """Operators that compute a + k * samples, of the shape of a."""
    start, slope = line
    w = made.writer
    before, w.nodes = w.nodes, []
    samples = w.node("Shape", source, start=0, end=1)  # (1,)
    if start.ndim == 0:
        samples = w.node("Squeeze", samples, w.ints(0))
    if start.dtype != np.int64:
        samples = w.cast(samples, start.dtype)
    if (slope != 1).any() or slope.shape not in ((), (1,)):
        samples = w.node("Mul", samples, w.constant(slope))
    if start.any():
        w.node("Add", samples, w.constant(start))
    nodes, w.nodes = w.nodes, before
    nodes[-1].name = nodes[-1].output[0] = name
    return nodes


def _open(specs: list[Spec]) -> Any:
    """A spec whose sizes are those of all drafts; one that differs is N, or unknown."""
    sizes: list[int | str | None] = []
    for each in zip(*[spec.shape for spec in specs], strict=True):
        sizes.append(each[0] if len(set(each)) == 1 else NAME if each == SIZES else None)
    return tuple(sizes), specs[0].dtype
