"""Operators of ONNX as ops of tinygraph, by family; see ../nodes.py and ../operators.py."""
