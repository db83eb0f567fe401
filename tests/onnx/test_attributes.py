"""Attributes of ONNX files: what the standard does not say is refused, for each operator."""

import numpy as np
import onnx
import pytest
from onnx import helper

import tinygraph as tg
from tests.onnx.models import FLOAT, model, node, numbers, save
from tinygraph.base.errors import OnnxError
from tinygraph.interop.onnx import attributes, operators
from tinygraph.interop.onnx.nodes import Node

INT, STRING = onnx.defs.OpSchema.AttrType.INT, onnx.defs.OpSchema.AttrType.STRING


def bodies(schema):
    return schema.has_function or schema.has_context_dependent_function


READ = [
    schema
    for schema in onnx.defs.get_all_schemas_with_history()
    if schema.domain == ""
    and schema.name not in {kind for _, kind in operators.REFUSED}
    and (("", schema.name) in operators.TABLE or bodies(schema))
    and not schema.deprecated
]
EACH = sorted({(s.name, name) for s in READ for name in s.attributes})
WORDS = [
    (s, name)
    for s in sorted(READ, key=lambda s: (s.name, s.since_version))
    for name, attribute in s.attributes.items()
    if attribute.type == STRING and name != "value_string" and (s.name, name) != ("Cast", "to")
]


def file(schema, **settings):
    """A file of one node; what it leaves out of what the operator requires, is made up."""
    usual = {INT: 1, STRING: "x", onnx.defs.OpSchema.AttrType.INTS: [1]}
    usual |= {onnx.defs.OpSchema.AttrType.FLOATS: [1.0], onnx.defs.OpSchema.AttrType.FLOAT: 1.0}
    made_up = {
        name: usual[a.type]
        for name, a in schema.attributes.items()
        if a.required and a.type in usual
    }
    made_up |= {} if "mode" not in made_up else {"mode": "TF"}
    names = [f"x{i}" for i in range(max(schema.min_input, 1))]
    outputs = [f"y{i}" for i in range(max(schema.min_output, 1))]
    one = node(schema.name, names, outputs, **(made_up | settings))
    return model(
        [one],
        dict.fromkeys(names, (FLOAT, None)),
        {"y0": (FLOAT, None)},
        opset=schema.since_version,
        ir=10,
    )


def test_each_attribute_of_each_operator_has_its_verdict():
    """None is left out, no table names one twice or one that no operator has."""
    assert [pair for pair in EACH if not attributes.verdict(*pair)] == []
    known = {name for _, name in EACH} | {f"{kind}.{name}" for kind, name in EACH}
    later = {"activation", "update_rule", "chunk_size", "SpaceToDepth.mode"}  # of onnx 1.23
    seen = [name for table in attributes._TABLES.values() for name in table]
    assert len({*seen}) == len(seen) and {*seen} <= known | later


def test_the_tables_hold_what_the_standard_has_by_default():
    for schema in READ:
        for name, attribute in schema.attributes.items():
            if attribute.default_value.type:
                value = helper.get_attribute_value(attribute.default_value)
                value = value.decode() if isinstance(value, bytes) else value
                made = Node(schema.name, schema.since_version, {name: value})
                attributes._require_meaning(made, name, value)


@pytest.mark.parametrize(
    "schema, name", WORDS, ids=[f"{s.name}-{s.since_version}-{name}" for s, name in WORDS]
)
def test_a_word_that_nobody_knows_is_refused(schema, name, tmp_path):
    for bad in ("bogus", "", "Reverse"):
        path = save(file(schema, **{name: bad}), tmp_path / "model.onnx")
        with pytest.raises(OnnxError, match=rf"(?s){schema.name}.*{name}|inputs"):
            network = tg.onnx.load(path)
            with tg.no_grad():
                network(*[numbers(2, 3, 4, 4) for _ in network.input_names])


@pytest.mark.parametrize("kind, name", [p for p in EACH if attributes.verdict(*p) == "FLAGS"])
def test_a_flag_is_0_or_1(kind, name, tmp_path):
    for schema in READ:
        if schema.name == kind and name in schema.attributes:
            for bad in (2, -1):
                path = save(file(schema, **{name: bad}), tmp_path / "model.onnx")
                with pytest.raises(OnnxError, match=rf"{kind}.*{name}: expected 0 or 1"):
                    tg.onnx.load(path)


@pytest.mark.parametrize("kind, name", [p for p in EACH if attributes.verdict(*p) == "LEAST"])
def test_a_number_below_the_least_is_refused(kind, name, tmp_path):
    least = attributes.LEAST.get(f"{kind}.{name}", attributes.LEAST.get(name))
    for schema in READ:
        if schema.name == kind and name in schema.attributes:
            bad = least - 1
            if schema.attributes[name].type.name.endswith("S"):
                bad = [1, bad]
            elif schema.attributes[name].type.name == "FLOAT":
                bad = float(bad)
            path = save(file(schema, **{name: bad}), tmp_path / "model.onnx")
            with pytest.raises(OnnxError, match=rf"{kind}.*{name}: expected {least} or more"):
                tg.onnx.load(path)


# ---- what is held against the input, or against other attributes ---------------------------------


def ran(nodes, shapes, tmp_path, *, opset=20, outputs=("y",), values=None):
    """The outputs of a file for random inputs of some shapes."""
    inputs = {f"x{i}": (FLOAT, None) for i in range(len(shapes))}
    made = model(
        nodes, inputs, dict.fromkeys(outputs, (FLOAT, None)), values or {}, opset=opset, ir=8
    )
    network = tg.onnx.load(save(made, tmp_path / "model.onnx"))
    with tg.no_grad():
        return network(*[numbers(*shape, seed=i) for i, shape in enumerate(shapes)])


LSTM = [(3, 2, 4), (1, 20, 4), (1, 20, 5)]  # steps, samples, features; weights of 5 states
WEIGHTS = ["x0", "x1", "x2"]
WRONG = {
    "hidden_size": ([node("LSTM", WEIGHTS, ["y"], hidden_size=4)], LSTM, 20),
    "clip": ([node("LSTM", WEIGHTS, ["y"], hidden_size=5, clip=0.0)], LSTM, 20),
    "activations": ([node("LSTM", WEIGHTS, ["y"], activations=["Sigmoid", "Tanh"])], LSTM, 20),
    "more activations": (
        [node("LSTM", WEIGHTS, ["y"], activations=["Sigmoid", "Tanh", "Tanh", "Tanh"])],
        LSTM,
        20,
    ),
    "activation_alpha": (
        [
            node(
                "LSTM",
                WEIGHTS,
                ["y"],
                activations=["Sigmoid", "LeakyRelu", "Tanh"],
                activation_alpha=[0.1, 0.2],
            )
        ],
        LSTM,
        20,
    ),
    "P": ([node("LSTM", [*WEIGHTS, *[""] * 4, "x3"], ["y"])], [*LSTM, (1, 3)], 20),
    "ConvTranspose.pads": (
        [node("ConvTranspose", ["x0", "x1"], ["y"], pads=[0, 1])],
        [(1, 1, 4, 4), (1, 1, 3, 3)],
        20,
    ),
    "ConvTranspose.auto_pad": (
        [node("ConvTranspose", ["x0", "x1"], ["y"], auto_pad="SAME")],
        [(1, 1, 4, 4), (1, 1, 3, 3)],
        20,
    ),
    "num_outputs": ([node("Split", ["x0"], ["y", "z"], num_outputs=3)], [(6,)], 20),
    "split": ([node("Split", ["x0"], ["y"], split=[2, 4])], [(6,)], 11),
    "axis of early opsets": (
        [node("Add", ["x0", "x1"], ["y"], axis=3, broadcast=1)],
        [(2, 3), (3,)],
        6,
    ),
    "broadcast": ([node("Add", ["x0", "x1"], ["y"])], [(2, 3), (3,)], 6),
    "axes": ([node("ReduceSum", ["x0"], ["y"], axes=[0, -2])], [(2, 3)], 11),
    "axes of MeanVarianceNormalization": (
        [node("MeanVarianceNormalization", ["x0"], ["y"], axes=[0, 0])],
        [(2, 3)],
        20,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_the_input_is_refused(name, tmp_path):
    nodes, shapes, opset = WRONG[name]
    with pytest.raises(OnnxError):
        ran(nodes, shapes, tmp_path, opset=opset)


def test_an_axis_is_not_counted_around(tmp_path):
    values = {"depth": np.array(4), "values": np.array([0.0, 1.0], np.float32)}
    values["ids"] = np.array([1, 2])
    with pytest.raises(OnnxError, match=r"OneHot.*axis"):
        ran(
            [node("OneHot", ["ids", "depth", "values"], ["y"], axis=2)], [], tmp_path, values=values
        )
    with pytest.raises(OnnxError, match=r"DFT.*axis"):
        ran([node("DFT", ["x0"], ["y"], axis=4)], [(1, 4, 1)], tmp_path, opset=17)


def leaky(x, alpha):
    return np.where(x < 0, alpha * x, x)


def test_functions_take_their_alphas_in_order(tmp_path):
    """One alpha for the one function that has any: the second; h = leaky(w x + r h) by hand."""
    nodes = [
        node("Transpose", ["x0"], ["t"], perm=[0, 1, 2]),
        node(
            "RNN",
            ["t", "x1", "x2"],
            ["y"],
            direction="bidirectional",
            activations=["Tanh", "LeakyRelu"],
            activation_alpha=[0.5],
        ),
    ]
    y = ran(nodes, [(2, 1, 3), (2, 4, 3), (2, 4, 4)], tmp_path).numpy()
    x, w, r = numbers(2, 1, 3), numbers(2, 4, 3, seed=1), numbers(2, 4, 4, seed=2)
    for d, function in enumerate((np.tanh, lambda v: leaky(v, 0.5))):
        h = np.zeros((1, 4), np.float32)
        for t in (0, 1) if d == 0 else (1, 0):
            h = function(x[t] @ w[d].T + h @ r[d].T)
            np.testing.assert_allclose(y[t, d], h, 1e-5, 1e-6)


def test_a_convolution_the_other_way_round_without_padding(tmp_path):
    """auto_pad="VALID" leaves pads aside: (4 - 1) * 1 + 3 = 6."""
    one = node("ConvTranspose", ["x0", "x1"], ["y"], auto_pad="VALID", pads=[1, 1, 1, 1])
    assert ran([one], [(1, 1, 4, 4), (1, 1, 3, 3)], tmp_path).shape == (1, 1, 6, 6)


# ---- opsets, functions ---------------------------------------------------------------------------


@pytest.mark.parametrize("opset", [0, -1, onnx.defs.onnx_opset_version() + 1, 1000, 2**40])
def test_an_opset_that_nobody_knows_is_refused(opset, tmp_path):
    made = model(
        [node("Relu", ["x"], ["y"])], {"x": (FLOAT, [2])}, {"y": (FLOAT, [2])}, opset=opset
    )
    with pytest.raises(OnnxError, match="opset|domain_version"):
        tg.onnx.load(save(made, tmp_path / "model.onnx"))
    newest = onnx.defs.onnx_opset_version()
    made.opset_import[0].version = newest
    made.ir_version = 13
    x = np.array([-1.0, 2.0], np.float32)
    found = tg.onnx.load(save(made, tmp_path / "model.onnx"))(x)
    np.testing.assert_array_equal(found.numpy(), [0.0, 2.0])


def test_one_domain_has_one_version(tmp_path):
    made = model([node("Relu", ["x"], ["y"])], {"x": (FLOAT, [2])}, {"y": (FLOAT, [2])})
    made.opset_import.append(helper.make_opsetid("ai.onnx", 13))
    with pytest.raises(OnnxError, match="one version"):
        tg.onnx.load(save(made, tmp_path / "model.onnx"))


def with_function(*functions, ir=10, **settings):
    return model(
        [node("F", ["x"], ["y"], domain="local", **settings)],
        {"x": (FLOAT, [2])},
        {"y": (FLOAT, [2])},
        functions=functions,
        others=[("local", 1)],
        ir=ir,
    )


def function(kind, overload="", declared=("slope",), **settings):
    one = node(kind, ["a"], ["c"], **settings)
    if kind == "LeakyRelu":
        attribute = one.attribute.add(name="alpha", ref_attr_name="slope")
        attribute.type = onnx.AttributeProto.FLOAT
    opsets = [helper.make_opsetid("", 20)]
    made = helper.make_function("local", "F", ["a"], ["c"], [one], opsets, declared)
    made.overload = overload
    return made


def test_attributes_of_a_function_have_the_types_of_what_they_become(tmp_path):
    x = np.array([-1.0, 2.0], np.float32)
    made = with_function(function("LeakyRelu"), slope=0.5)
    found = tg.onnx.load(save(made, tmp_path / "model.onnx"))(x)
    np.testing.assert_array_equal(found.numpy(), [-0.5, 2.0])
    for bad in ("0.5", 1, [0.5], b"\xff"):
        made = with_function(function("LeakyRelu"), slope=bad)
        with pytest.raises(OnnxError, match="type FLOAT|valid"):
            tg.onnx.load(save(made, tmp_path / "model.onnx"))
    made = with_function(function("LeakyRelu"), slop=0.5)
    with pytest.raises(OnnxError, match="slop"):
        tg.onnx.load(save(made, tmp_path / "model.onnx"))


def test_functions_of_one_name_are_told_apart_by_their_overload(tmp_path):
    made = with_function(function("Abs"), function("Neg", "other"))
    made.graph.node[0].overload = "other"
    found = tg.onnx.load(save(made, tmp_path / "model.onnx"))(np.array([-1.0, 2.0], np.float32))
    np.testing.assert_array_equal(found.numpy(), [1.0, -2.0])
