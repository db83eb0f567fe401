"""The package onnx, which the extra `onnx` installs, or an error that says so."""

from __future__ import annotations

from tinygraph.base import OnnxError, install

try:
    import onnx as onnx
except ImportError as missing:
    raise OnnxError(
        "tg.onnx", "onnx", "the package onnx 1.22 or newer", missing, install("onnx")
    ) from missing
