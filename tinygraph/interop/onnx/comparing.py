"""What a file gives in onnxruntime, beside what the network gives here."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tinygraph.base import AnyPath, OnnxError
from tinygraph.engine import Array, no_grad
from tinygraph.interop.onnx.library import onnx
from tinygraph.interop.onnx.tracing import named_tensors

SAMPLES = (1, 3)
TOLERANCE = 1e-4  # of the largest number of an output: what float32 may lose in a deep network


class Compared(NamedTuple):
    """With which version, on batches of how many samples, and the largest difference of all.

    `share` is that difference as a part of the largest number of its output.
    """

    version: str
    samples: tuple[int, ...]
    difference: float
    share: float

    @property
    def ok(self) -> bool:
        """Whether it is no more than rounding."""
        return self.share <= TOLERANCE


def compare(path: AnyPath, model: Callable[..., Any], like: Sequence[Array]) -> Compared | None:
    """Run a file in onnxruntime and its network here, on random inputs like some arrays.

    Floats are drawn from the normal distribution, integers are 0 or 1.  None: onnxruntime is not
    there.  OnnxError: it does not run the file, for want of an operator for float64, say.
    """
    try:
        runtime = importlib.import_module("onnxruntime")
    except ImportError:
        return None
    options = runtime.SessionOptions()
    options.log_severity_level = 3  # what it leaves out as unused is no news
    try:
        session = runtime.InferenceSession(str(path), options)
    except Exception as error:  # its own classes derive from this one alone
        got = str(error).strip().splitlines()[0]
        raise OnnxError("onnxruntime", str(path), "a file that it runs", got) from error
    names, rng = [each.name for each in session.get_inputs()], np.random.default_rng(0)
    difference = share = 0.0
    for count in SAMPLES:
        arrays = [_drawn(rng, (count, *a.shape[1:]), a.dtype) for a in like]
        found = session.run(None, dict(zip(names, arrays, strict=True)))
        with no_grad():
            expected = [y.numpy() for _, y in named_tensors(model(*arrays), "output")]
        for a, b in zip(found, expected, strict=True):
            apart = float(np.max(np.abs(a - b.astype(a.dtype)), initial=0.0))
            difference = max(difference, apart)
            share = max(share, apart / max(float(np.max(np.abs(b), initial=0.0)), 1e-30))
    return Compared(runtime.__version__, SAMPLES, difference, share)


def _drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 2, shape).astype(dtype)


def described(path: AnyPath) -> dict[str, Any]:
    """How many operators a file has, and its inputs and outputs with sizes and dtypes."""
    graph = onnx.load(path, load_external_data=False).graph
    return {
        "operators": len(graph.node),
        "inputs": [_described(each) for each in graph.input],
        "outputs": [_described(each) for each in graph.output],
    }


def _described(value: Any) -> dict[str, Any]:
    kind = value.type.tensor_type
    sizes = [d.dim_value if d.HasField("dim_value") else d.dim_param or "?" for d in kind.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    return {"name": value.name, "shape": sizes, "dtype": str(dtype)}
