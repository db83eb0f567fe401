"""ONNX, the open format of networks: files that other libraries run.

    load        a file as a module, to run and to train
    save        a network as a file                    to_proto   as a message of the package onnx
    exporter    how an op of your own is written

The package `onnx`, an extra, is loaded when one of these names is first used; see library.py.
"""

from typing import TYPE_CHECKING

from tinygraph.base.lazy import lazy

# No module of this room may have the name of a function here: Python binds it to the package.
if TYPE_CHECKING:
    from tinygraph.interop.onnx.export import save, to_proto
    from tinygraph.interop.onnx.exporters import exporter
    from tinygraph.interop.onnx.loading import OnnxModule, load
else:
    _HOMES = {
        "OnnxModule": "tinygraph.interop.onnx.loading",
        "exporter": "tinygraph.interop.onnx.exporters",
        "load": "tinygraph.interop.onnx.loading",
        "save": "tinygraph.interop.onnx.export",
        "to_proto": "tinygraph.interop.onnx.export",
    }
    __getattr__, __dir__ = lazy(__name__, _HOMES)

__all__ = ["OnnxModule", "exporter", "load", "save", "to_proto"]
