"""Operators that are computed by `onnx.reference`, the standard's own implementation in numpy.

They have no gradient: where one would have to flow back through them, they are refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.engine import as_tensor
from tinygraph.interop.onnx.library import onnx
from tinygraph.interop.onnx.nodes import (
    Node,
    Value,
    array,
    axis_of,
    importer,
    ints,
    of_axes,
    take_memory,
    wanted_by_gradients,
)

KINDS = (
    "AffineGrid",
    "DFT",
    "DeformConv",
    "Det",
    "GridSample",
    "MaxRoiPool",
    "MelWeightMatrix",
    "NonMaxSuppression",
    "RoiAlign",
    "STFT",
    "TfIdfVectorizer",
)


@importer(*KINDS, raw=True)
def by_reference(node: Node, *values: Value) -> Any:
    if wanted_by_gradients(values):
        raise node.refuse(
            "inputs", "some without a gradient", "one that requires it", "with tg.no_grad(): ..."
        )
    _require_sizes(node, list(map(array, values)))
    from onnx.reference import ReferenceEvaluator  # here: its import takes a while

    inputs, given = [], {}
    for i, x in enumerate(values):
        if x is not None:
            given[f"x{i}"] = array(x)
            code = onnx.helper.np_dtype_to_tensor_dtype(given[f"x{i}"].dtype)
            inputs.append(onnx.helper.make_tensor_value_info(f"x{i}", code, None))
    names = ["" if x is None else f"x{i}" for i, x in enumerate(values)]
    outputs = [f"y{i}" if node.wants(i) else "" for i in range(len(node.outputs))]
    settings = {k: v for k, v in node.attributes.items() if v is not None}
    made = onnx.helper.make_node(node.kind, names, outputs, **settings)
    results = [onnx.helper.make_empty_tensor_value_info(y) for y in outputs if y]
    graph = onnx.helper.make_graph([made], "one", inputs, results)
    opsets = [onnx.helper.make_opsetid("", node.version)]
    model = onnx.helper.make_model(graph, opset_imports=opsets)
    try:
        found = iter(ReferenceEvaluator(model).run(None, given))
    except MemoryError:
        raise
    except Exception as error:  # it has errors of many kinds, and asserts
        raise node.refuse("inputs", "what onnx.reference takes", error) from error
    computed = [np.asarray(next(found)) if y else None for y in outputs]
    floats = (np.float32, np.float64)
    return tuple([as_tensor(y) if y is not None and y.dtype in floats else y for y in computed])


def _require_sizes(node: Node, values: list[Any]) -> None:
    """Raise where what the file says has no room, or means nothing: the reference looks at neither.

    What is counted is the output, and what is made on the way to it.
    """
    x, first, second, third, *_ = [*values, None, None, None]
    match node.kind:
        case "AffineGrid":
            sizes = ints(first)
            take_memory([*sizes, len(sizes)])
        case "DFT":
            given = node["axis"] if node.version < 20 else -2
            axis = axis_of(_number(second, given), x.ndim)
            if axis == x.ndim - 1:
                raise node.refuse("axis", "one of the signal", axis)
            length = _number(first, x.shape[axis])
            take_memory([*x.shape[:axis], length, *x.shape[axis + 1 :], 2])
        case "DeformConv":
            _require_image(node, x, first)
        case "MelWeightMatrix":
            take_memory([_number(x, 0) + 2, _number(first, 0) // 2 + 1])
        case "RoiAlign":
            regions, high, wide = len(first), node["output_height"], node["output_width"]
            take_memory([regions, high, wide, max(node["sampling_ratio"], 1) ** 2])
            take_memory([regions, x.shape[1], high, wide])
        case "STFT":
            size = _number(third, x.shape[1] if second is None else second.size)
            step = _number(first, 0)
            if step < 1 or not 1 <= size <= x.shape[1]:
                expected = f"a step of 1 or more, frames of 1 to {x.shape[1]}"
                raise node.refuse("frame_step, frame_length", expected, f"{step}, {size}")
            take_memory([len(x), 1 + (x.shape[1] - size) // step, size, 2])
        case "TfIdfVectorizer":
            take_memory([*x.shape[:-1], max(node["ngram_indexes"], default=0) + 1])


def _number(x: Any, usual: int) -> int:
    return usual if x is None else int(x.reshape(()))


def _require_image(node: Node, x: Any, w: Any) -> None:
    """The output of a DeformConv: samples, channels, and as many places as the windows have."""
    axes = x.ndim - 2
    of_axes(node, "kernel_shape", axes, 1)
    strides, dilations = (of_axes(node, name, axes, 1) for name in ("strides", "dilations"))
    pads = of_axes(node, "pads", 2 * axes, 0)
    if min(pads) < 0:
        raise node.refuse("pads", "0 or more", pads)
    image = [
        (n + pads[i] + pads[axes + i] - dilations[i] * (w.shape[2 + i] - 1) - 1) // strides[i] + 1
        for i, n in enumerate(x.shape[2:])
    ]
    take_memory([len(x), len(w), *image])
