"""Who runs a file: onnxruntime where it has the operators for these dtypes, else onnx.reference."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="needs onnx")
pytest.importorskip("onnx.reference")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")

QUIET = onnxruntime.SessionOptions()
QUIET.log_severity_level = 4
QUIET.intra_op_num_threads = QUIET.inter_op_num_threads = 1


def by_onnxruntime(file, *arrays, **named):
    """The outputs by onnxruntime, of a file or a message."""
    source = str(file) if hasattr(file, "suffix") else file.SerializeToString()
    session = onnxruntime.InferenceSession(source, QUIET)
    names = [each.name for each in session.get_inputs()]
    return session.run(None, {**dict(zip(names, arrays, strict=False)), **named})


def by_reference(proto, *arrays):
    """The outputs by onnx's own definitions in numpy."""
    names = [each.name for each in proto.graph.input]
    with np.errstate(all="ignore"):
        return onnx.reference.ReferenceEvaluator(proto).run(
            None, dict(zip(names, arrays, strict=True))
        )


def run(proto, *arrays):
    """The outputs by the first of the two that has the operators."""
    try:
        return by_onnxruntime(proto, *arrays)
    except Exception as error:
        if "NOT_IMPLEMENTED" not in str(error) and "does not support" not in str(error):
            raise
        return by_reference(proto, *arrays)


def close(got, expected, tolerance=1e-5):
    """Equal shapes, dtypes and numbers; the largest number says what a difference is."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape and got.dtype == expected.dtype
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(got, expected)
        return
    size = float(np.max(np.abs(expected[np.isfinite(expected)]), initial=1.0))
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance * size)
