"""The table of exporters: every op is in it, or among those that ONNX cannot have."""

import numpy as np
import pytest

import tinygraph as tg
from tests.onnx import runtimes
from tinygraph import ops
from tinygraph.base.errors import ArgumentError, OnnxError
from tinygraph.engine.op import registry
from tinygraph.interop.onnx.exporters import exporter_of
from tinygraph.interop.onnx.table import EXPORTERS, WITHOUT_ONNX
from tinygraph.ops.elementwise.relu import Relu

OURS = {cls for cls in registry.values() if cls.__module__.startswith(ops.__name__)}


def test_every_op_has_an_exporter_or_a_reason():
    assert len(OURS) > 100
    known = EXPORTERS.keys() | WITHOUT_ONNX.keys()
    missing = sorted(cls.__qualname__ for cls in OURS - known)
    assert not missing, f"@exporter({missing[0]}) in tinygraph/interop/onnx/exporters"


def test_the_ops_without_are_ops_and_have_none():
    assert not EXPORTERS.keys() & WITHOUT_ONNX.keys()
    assert {cls.name for cls in WITHOUT_ONNX} == {"dropout"}  # may only shrink
    assert WITHOUT_ONNX.keys() <= OURS and all(WITHOUT_ONNX.values())


class Doubled(tg.Op):
    def forward(self, mem, x):
        return 2 * x, None


class Tripled(Relu):
    def forward(self, mem, x):
        return 3 * x, None


@pytest.fixture
def own_table(monkeypatch):
    before = dict(EXPORTERS)
    yield
    EXPORTERS.clear()
    EXPORTERS.update(before)


def test_an_op_of_ones_own(own_table):
    @tg.onnx.exporter(Doubled)
    def doubled(w, node, x):
        assert (node.shape, node.dtype) == ((3,), np.float32)
        return w.node("Mul", x, w.constant(2, node.dtype))

    x = np.array([1.0, -2.0, 3.0], np.float32)
    proto = tg.onnx.to_proto(lambda x: tg.relu(Doubled()(x)), x, batch=False)
    (y,) = runtimes.by_onnxruntime(proto, x)
    np.testing.assert_array_equal(y, [2, 0, 6])


@pytest.mark.parametrize("op", [Doubled, Tripled])
def test_an_op_without_an_exporter_says_how_to_write_one(op):
    with pytest.raises(OnnxError, match=rf"@tg.onnx.exporter\({op.__name__}\)"):
        tg.onnx.to_proto(lambda x: op()(x), np.ones(2, np.float32))
    with pytest.raises(OnnxError):
        exporter_of(op())


@pytest.mark.parametrize("wrong", [Relu(), tg.relu, None])
def test_exporters_are_of_classes_of_ops(wrong):
    with pytest.raises(ArgumentError, match=r"the class itself"):
        tg.onnx.exporter(wrong)


def test_an_exporter_that_writes_nonsense_is_named_so(own_table):
    tg.onnx.exporter(Doubled)(lambda w, node, x: w.node("Mull", x, x))
    with pytest.raises(OnnxError, match=r"onnx.checker takes, got .*Mull"):
        tg.onnx.to_proto(lambda x: Doubled()(x), np.ones(2, np.float32))


def test_an_operator_of_another_domain(own_table):
    tg.onnx.exporter(Doubled)(lambda w, node, x: w.node("Twice", x, domain="my.ops"))
    proto = tg.onnx.to_proto(lambda x: Doubled()(x), np.ones(2, np.float32))
    assert {each.domain: each.version for each in proto.opset_import} == {"": 20, "my.ops": 1}
