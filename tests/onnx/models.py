"""Small models for tests, built with onnx.helper."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def model(nodes, inputs, outputs, initializers=None, *, opset=20, functions=(), others=(), ir=9):
    """A ModelProto.  `inputs` by name (dtype, shape), `initializers` by name arrays."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(name, *spec) for name, spec in inputs.items()],
        [helper.make_tensor_value_info(name, *spec) for name, spec in outputs.items()],
        [numpy_helper.from_array(a, name) for name, a in (initializers or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset), *[helper.make_opsetid(*o) for o in others]]
    return helper.make_model(
        graph, opset_imports=opsets, functions=list(functions), ir_version=ir, producer_name="tests"
    )


FLOAT, DOUBLE, INT64 = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64
node = helper.make_node


def numbers(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def perceptron():
    """Two layers, as PyTorch names and exports them."""
    return model(
        [
            node("Gemm", ["x", "0.weight", "0.bias"], ["h"], transB=1),
            node("Relu", ["h"], ["r"]),
            node("Gemm", ["r", "2.weight", "2.bias"], ["y"], transB=1),
        ],
        {"x": (FLOAT, ["N", 4])},
        {"y": (FLOAT, ["N", 3])},
        {
            "0.weight": numbers(8, 4, seed=1),
            "0.bias": numbers(8, seed=2),
            "2.weight": numbers(3, 8, seed=3),
            "2.bias": numbers(3, seed=4),
        },
    )


def images(*, opset=20, training_mode=None):
    """Convolution, batch norm, pooling, dropout, and a flattening through Shape and Concat."""
    mode = {} if training_mode is None else {"training_mode": training_mode}
    nodes = [
        node("Conv", ["x", "conv.weight", "conv.bias"], ["c"], pads=[1, 1, 1, 1]),
        node(
            "BatchNormalization", ["c", "bn.weight", "bn.bias", "bn.mean", "bn.var"], ["b"], **mode
        ),
        node("Relu", ["b"], ["r"]),
        node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Dropout", ["p", "ratio"], ["d"]),
        node("Shape", ["d"], ["shape"]),
        node("Gather", ["shape", "zero"], ["batch"], axis=0),
        node("Unsqueeze", ["batch", "axis"], ["first"]),
        node("Concat", ["first", "rest"], ["sizes"], axis=0),
        node("Reshape", ["d", "sizes"], ["f"]),
        node("MatMul", ["f", "weight"], ["y"]),
    ]
    values = {
        "conv.weight": numbers(3, 1, 3, 3, seed=1),
        "conv.bias": numbers(3, seed=2),
        "bn.weight": numbers(3, seed=3),
        "bn.bias": numbers(3, seed=4),
        "bn.mean": numbers(3, seed=5),
        "bn.var": np.abs(numbers(3, seed=6)) + 1,
        "ratio": np.array(0.25, np.float32),
        "zero": np.array(0),
        "axis": np.array([0]),
        "rest": np.array([-1]),
        "weight": numbers(12, 2, seed=7),
    }
    inputs, outputs = {"x": (FLOAT, ["N", 1, 4, 4])}, {"y": (FLOAT, ["N", 2])}
    return model(nodes, inputs, outputs, values, opset=opset)


def sequence():
    """Embedding, an LSTM and the last of its states."""
    nodes = [
        node("Gather", ["table", "ids"], ["e"]),
        node("Transpose", ["e"], ["t"], perm=[1, 0, 2]),
        node("LSTM", ["t", "lstm.w", "lstm.r", "lstm.b"], ["", "h"], hidden_size=3),
        node("Squeeze", ["h", "axes"], ["y"]),
    ]
    values = {
        "table": numbers(7, 2, seed=1),
        "lstm.w": numbers(1, 12, 2, seed=2),
        "lstm.r": numbers(1, 12, 3, seed=3),
        "lstm.b": numbers(1, 24, seed=4),
        "axes": np.array([0]),
    }
    return model(nodes, {"ids": (INT64, ["N", 5])}, {"y": (FLOAT, ["N", 3])}, values)


def functions():
    """A function of the file with an attribute, and an operator that is a body."""
    scale = helper.make_function(
        "local",
        "Scaled",
        ["a", "b"],
        ["c"],
        [
            onnx.parser.parse_node("k = Constant <value_float: float = @factor>()"),
            node("Mul", ["a", "k"], ["m"]),
            node("Add", ["m", "b"], ["c"]),
        ],
        [helper.make_opsetid("", 20)],
        ["factor"],
    )
    nodes = [
        node("Scaled", ["x", "shift"], ["s"], domain="local", factor=2.5),
        node("HardSwish", ["s"], ["h"]),
        node("CenterCropPad", ["h", "size"], ["y"], axes=[0]),
    ]
    values = {"shift": numbers(4), "size": np.array([2])}
    inputs, outputs = {"x": (FLOAT, [3, 4])}, {"y": (FLOAT, [2, 4])}
    return model(nodes, inputs, outputs, values, functions=[scale], others=[("local", 1)])


ALL = {"perceptron": perceptron, "images": images, "sequence": sequence, "functions": functions}


def save(made, path, *, outside=False):
    """Write a model; with `outside` its tensors into a file beside it."""
    if outside:
        onnx.save_model(
            made,
            path,
            save_as_external_data=True,
            all_tensors_to_one_file=True,
            location="data.bin",
            size_threshold=0,
        )
    else:
        path.write_bytes(made.SerializeToString())
    return path
