"""The table of operators, filled; and those that are refused by name, with the reason.

By family: importers/*.py.  Beside them `program.py` unfolds the operators that the standard gives a
body in simpler ones.
"""

from __future__ import annotations

from tinygraph.interop.onnx.importers import (
    convolution,
    elementwise,
    indexing,
    integers,
    losses,
    normalization,
    pairs,
    pooling,
    recurrent,
    reductions,
    reference,
    resize,
    shapes,
)
from tinygraph.interop.onnx.nodes import TABLE

_REASONS = {
    "control flow": "If Loop Scan SequenceMap",
    "sequences and optionals": "ConcatFromSequence Optional OptionalGetElement OptionalHasElement "
    "SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength "
    "SplitToSequence",
    "strings": "ImageDecoder RegexFullMatch StringConcat StringNormalizer StringSplit",
    "quantised numbers": "ConvInteger DequantizeLinear DynamicQuantizeLinear MatMulInteger "
    "QLinearConv QLinearMatMul QuantizeLinear",
    "random numbers inside the file": "Bernoulli Multinomial RandomNormal RandomNormalLike "
    "RandomUniform RandomUniformLike",
}
REFUSED = {("", kind): reason for reason, kinds in _REASONS.items() for kind in kinds.split()}

FAMILIES = (  # in the order of the documentation
    elementwise,
    pairs,
    integers,
    reductions,
    shapes,
    indexing,
    convolution,
    pooling,
    resize,
    normalization,
    losses,
    recurrent,
    reference,
)

__all__ = ["FAMILIES", "REFUSED", "TABLE"]
