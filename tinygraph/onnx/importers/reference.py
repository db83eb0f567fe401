"""Operators that are computed by `onnx.reference`, the standard's own implementation in numpy.

They have no gradient: where one would have to flow back through them, they are refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.onnx.library import onnx
from tinygraph.onnx.nodes import Node, Value, array, importer, wanted_by_gradients
from tinygraph.tensor import as_tensor

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
