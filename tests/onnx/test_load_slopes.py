"""Gradients of operators, against finite differences, at the inputs of their test vectors."""

import collections

import numpy as np
import onnx
import pytest

import tinygraph as tg
from tests.onnx.vectors import kinds_of, parts, vectors
from tinygraph.base.errors import OnnxError

MOST = 2000  # elements of all inputs of a vector
EACH = 3  # vectors of an operator

# Operators through which no gradient flows: their outputs are positions, shapes or bools.
WITHOUT_GRADIENT = {
    "ArgMax",
    "ArgMin",
    "BitCast",
    "Equal",
    "EyeLike",
    "Greater",
    "GreaterOrEqual",
    "Hardmax",
    "IsInf",
    "IsNaN",
    "Less",
    "LessOrEqual",
    "NonZero",
    "OneHot",
    "Shape",
    "Size",
    "Unique",
}
# Rows of attention in which everything is masked: the output is 0, the gradient is not.
MASKED = ("fullymasked", "structural_empty", "nan_robustness")


def doubled(made, inputs):
    """A model and its inputs with float64 in the place of float32."""
    model = onnx.ModelProto()
    model.CopyFrom(made)
    for each in model.graph.input:
        if each.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            each.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    return model, [a.astype(np.float64) if a.dtype == np.float32 else a for a in inputs]


class Slope:
    """A sum of a network's outputs, each times a number, as a function of its floats."""

    def __init__(self, network, inputs, rng, kind=""):
        self.network, self.inputs = network, inputs
        count = 1 if kind in ("Resize", "Upsample") else len(inputs)  # the others are scales
        self.floats = [i for i, a in enumerate(inputs[:count]) if a.dtype == np.float64]
        # Near the inputs, and not at them: many are zeros, or equal.
        self.at = [inputs[i] + 0.01 * rng.standard_normal(inputs[i].shape) for i in self.floats]
        self.flows = False

    def __call__(self, arrays):
        nodes = [tg.Tensor(a, requires_grad=True) for a in arrays]
        given = list(self.inputs)
        for i, node in zip(self.floats, nodes, strict=True):
            given[i] = node
        outputs = self.network(*given)
        total = None
        for y in outputs if isinstance(outputs, tuple) else (outputs,):
            if isinstance(y, tg.Tensor) and y.requires_grad and y.size:
                weight = np.cos(1.0 + np.arange(y.size)).reshape(y.shape)
                part = (y * weight.astype(y.dtype)).sum().astype(np.float64)
                total = part if total is None else total + part
        return total, nodes

    def differs(self, rng):
        """Inputs whose gradient is not the slope; where the slope is no number, none."""
        total, nodes = self(self.at)
        if total is None:
            return []
        self.flows = True
        total.backward()
        found = []
        for k, node in enumerate(nodes):
            if node.grad is None:
                continue
            direction = rng.standard_normal(node.shape)
            mine = float((node.grad * direction).sum())
            slopes = [self.slope(k, direction, step) for step in (1e-6, 1e-3)]
            if np.isfinite(slopes).all() and not np.isclose(slopes, mine, 2e-4, 1e-6).any():
                found.append((self.floats[k], mine, slopes))
        return found

    def slope(self, k, direction, step):
        ends = []
        for sign in (1, -1):
            moved = list(self.at)
            moved[k] = moved[k] + sign * step * direction
            ends.append(self(moved)[0].item())
        return (ends[0] - ends[1]) / (2 * step)


def checkable():
    """Vectors with few floats, some of each operator."""
    counts = collections.Counter()
    for name, case in vectors("node").items():
        made, sets = parts(case)
        inputs = sets[0][0]
        arrays = all(isinstance(a, np.ndarray) for a in inputs)
        if not arrays or any(word in name for word in MASKED):
            continue
        floats = sum(a.size for a in inputs if a.dtype == np.float32)
        kind = ",".join(kinds_of(made))
        if 0 < floats <= MOST and counts[kind] < EACH:
            counts[kind] += 1
            yield name, kind, made, inputs


@pytest.mark.second
@np.errstate(all="ignore")  # some vectors hold inf and nan
def test_gradients_are_slopes(tmp_path):
    wrong, flowing, silent = {}, set(), set()
    for name, kind, made, inputs in checkable():
        rng = np.random.default_rng(3)
        model, inputs = doubled(made, inputs)
        path = tmp_path / "model.onnx"
        path.write_bytes(model.SerializeToString())
        try:
            slope = Slope(tg.onnx.load(path), inputs, rng, kind)
            if found := slope.differs(rng):
                wrong[name] = found
        except OnnxError:  # it takes no float64, or refuses to be without a gradient
            continue
        (flowing if slope.flows else silent).add(kind)
    assert not wrong
    assert len(flowing) > 100
    assert silent - flowing <= WITHOUT_GRADIENT and not flowing & WITHOUT_GRADIENT
