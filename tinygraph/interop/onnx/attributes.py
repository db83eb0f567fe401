"""What the attributes of operators may say.

`onnx.checker` knows names and types of attributes, not what they mean: direction="Reverse" passes
it, and would be taken for "forward" by an importer that looks for "reverse".  Here is what each may
be, by its name, or by operator and name where operators differ.  What is in no table is refused, so
that an attribute of a later standard is never passed over.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import OnnxError
from tinygraph.interop.onnx.library import onnx
from tinygraph.interop.onnx.nodes import TABLE, Node


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words; "wrap:19" is one from opset 19 on, "foward:1-2" one up to opset 2.
WORDS = {
    "activation": "none silu swish",
    "approximate": "none tanh",
    "auto_pad": "NOTSET SAME_LOWER SAME_UPPER VALID",
    "BitShift.direction": "LEFT RIGHT",
    "direction": "bidirectional forward foward:1-2 reverse",  # the second as the standard spelt it
    "DepthToSpace.mode": "CRD DCR",
    "GridSample.mode": "bicubic:16-19 bilinear:16-19 cubic:20 linear:20 nearest",
    "Pad.mode": "constant edge reflect wrap:19",
    "Resize.mode": "cubic:11 linear nearest",
    "RoiAlign.mode": "avg max",
    "SpaceToDepth.mode": "CRD DCR",
    "TensorScatter.mode": "circular linear",
    "TfIdfVectorizer.mode": "IDF TF TFIDF",
    "Upsample.mode": "bilinear linear nearest",  # the first in early files
    "keep_aspect_ratio_policy": "not_larger not_smaller stretch",
    "nearest_mode": "ceil floor round_prefer_ceil round_prefer_floor",
    "padding_mode": "border reflection zeros",
    "reduction": "mean none sum",
    "Resize.coordinate_transformation_mode": "align_corners asymmetric half_pixel "
    "half_pixel_symmetric:19 pytorch_half_pixel tf_crop_and_resize",
    "RoiAlign.coordinate_transformation_mode": "half_pixel output_half_pixel",
    "round_mode": "down nearest up",
    "ScatterElements.reduction": "add max:18 min:18 mul none",
    "ScatterND.reduction": "add max:18 min:18 mul none",
    "update_rule": "delta gated gated_delta linear",
}
# 0 or 1.
FLAGS = _names(
    "align_corners allowzero antialias broadcast ceil_mode center_point_box count_include_pad "
    "detect_negative detect_positive exclude_outside exclusive fmod input_forget interleaved "
    "inverse is_causal is_test keepdims largest layout linear_before_reset noop_with_empty_axes "
    "onesided output_sequence periodic reverse saturate select_last_index sorted spatial "
    "storage_order training_mode transA transB upper"
)
# Some numbers alone.
NUMBERS = {
    "LpNormalization.p": (1, 2),
    "qk_matmul_output_mode": (0, 1, 2, 3),
    "stash_type": (1,),  # float32, as we compute
}
# The least that a number may be, or each of a list.
LEAST = {
    "TopK.k": 0,
    "batch_dims": 0,
    "blocksize": 1,
    "chunk_size": 1,
    "dilations": 1,
    "epsilon": 0,
    "group": 1,
    "hidden_size": 1,
    "kernel_shape": 1,
    "kv_num_heads": 1,
    "max_gram_length": 1,
    "max_skip_count": 0,
    "min_gram_length": 1,
    "ngram_counts": 0,
    "ngram_indexes": 0,
    "num_groups": 1,
    "num_heads": 0,
    "num_outputs": 1,
    "offset_group": 1,
    "output_height": 1,
    "output_padding": 0,
    "output_shape": 0,
    "output_width": 1,
    "p": 1,
    "pooled_shape": 1,
    "q_num_heads": 1,
    "rotary_embedding_dim": 0,
    "sampling_ratio": 0,
    "size": 1,
    "strides": 1,
}
# Held against something when the node is computed: axes against those of the input, lists against
# each other, dtypes against those there are, an equation against its operands.
COMPUTED = _names(
    "EyeLike.k activation_alpha activation_beta activations axes axis batch_axis clip dtype end "
    "ends equation output_datatype paddings pads perm ratio scales shape softmax_precision "
    "sparse_value split start starts time_axis to value value_float value_floats value_int "
    "value_ints value_string value_strings"
)
# Any number means something: a window size of -1 is none.
ANY = _names(
    "alpha beta bias cubic_coeff_a extrapolation_value gamma height_scale ignore_index lambd "
    "left_window_size max min momentum pool_int64s pool_strings right_window_size scale softcap "
    "spatial_scale weights width_scale"
)
# Passed over on purpose: hints of the first opsets about memory, and the seed of a mask that our
# own generator draws.
IGNORED = _names("consumed_inputs seed")

_TABLES: dict[str, Any] = {"WORDS": WORDS, "FLAGS": FLAGS, "NUMBERS": NUMBERS, "LEAST": LEAST}
_TABLES |= {"COMPUTED": COMPUTED, "ANY": ANY, "IGNORED": IGNORED}
_TYPES = {"INT": int, "FLOAT": float, "STRING": str, "TENSOR": np.ndarray}
_TYPES |= {"INTS": list, "FLOATS": list, "STRINGS": list}


def require_attributes(node: Node, schema: Any, given: Any) -> None:
    """Raise OnnxError unless the standard, and we, know what each given attribute says."""
    known = schema.attributes
    for name in given:
        if name not in known:
            expected = f"attributes of {node.kind}: {', '.join(sorted(known)) or 'none'}"
            raise node.refuse("attribute", expected, repr(name))
        value, kind = node[name], known[name].type.name
        if not isinstance(value, _TYPES.get(kind, ())):
            raise node.refuse(name, f"an attribute of type {kind}", f"{value!r}"[:80])
        _require_meaning(node, name, value)


def verdict(kind: str, name: str) -> str:
    """Which table an attribute is in: its name, "" for none.

    >>> verdict("LSTM", "direction"), verdict("Conv", "strides"), verdict("Conv", "bogus")
    ('WORDS', 'LEAST', '')
    """
    for key in (f"{kind}.{name}", name):
        for table, names in _TABLES.items():
            if key in names:
                return table
    return ""


def words(kind: str, name: str, version: int) -> list[str]:
    """The words that an attribute may be in an opset."""
    said = (WORDS.get(f"{kind}.{name}") or WORDS[name]).split()
    found = []
    for word, _, opsets in (each.partition(":") for each in said):
        first, _, last = opsets.partition("-")
        if int(first or 1) <= version <= int(last or version):
            found.append(word)
    return found


def _require_meaning(node: Node, name: str, value: Any) -> None:
    table = verdict(node.kind, name)
    key = f"{node.kind}.{name}"
    if table == "WORDS":
        allowed = words(node.kind, name, node.version)
        if value not in allowed:
            raise node.refuse(name, f"one of {', '.join(allowed)}", repr(value))
    elif table == "FLAGS":
        if value not in (0, 1):
            raise node.refuse(name, "0 or 1", value)
    elif table == "NUMBERS":
        numbers = NUMBERS.get(key) or NUMBERS[name]
        if value not in numbers:
            raise node.refuse(name, f"one of {', '.join(map(str, numbers))}", value)
    elif table == "LEAST":
        least = LEAST[key] if key in LEAST else LEAST[name]
        if not all(n >= least for n in (value if isinstance(value, list) else [value])):
            raise node.refuse(name, f"{least} or more", value)
    elif not table and (("", node.kind) in TABLE or isinstance(value, str)):  # else a body reads it
        raise node.refuse("attribute", "attributes that are read", repr(name))


def require_opset(domain: str, version: int) -> None:
    """Raise OnnxError for an opset that the package onnx does not know."""
    newest = onnx.defs.onnx_opset_version()
    if domain == "" and not 1 <= version <= newest:
        way_out = "pip install -U onnx, or export the model for an earlier opset"
        raise OnnxError("load", "opset", f"1 to {newest}, which onnx knows", version, way_out)
