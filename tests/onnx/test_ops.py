"""Every public function, written as ONNX, gives what tinygraph gives: the problems of its tests."""

import functools

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import tinygraph as tg
from tests.completeness import STEMS
from tests.cuda.contract_work import contracts
from tests.onnx import runtimes
from tests.test_docs import script
from tinygraph.base.errors import OnnxError
from tinygraph.testing.problem import Problem, cast

TABLE = script("onnx_table")
ALL = {type(c).__name__: c for stem in STEMS for c in contracts(stem)}

# Of float64 onnxruntime lacks these, and onnx.reference gives something else than it should:
# groups of a transposed convolution, a number without axes, the activation Relu of RNN.
REFERENCE_ERRS = {"TestConvTranspose1d", "TestConvTranspose2d", "TestSoftsign", "TestRnnLayer"}


@functools.cache
def problems(name, count):
    """Some problems of a contract, the same at every run; none of empty arrays."""
    found = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(ALL[name].problems)
    def draw(problem):
        if all(a.size for a in problem.arrays):
            found.append(problem)

    draw()
    return found


def outputs_of(y):
    return [y] if isinstance(y, tg.Tensor) else list(y)


def compare(contract, problem, dtype):
    """What a file computes with what the function does; of a training that it is refused."""
    with np.errstate(over="ignore"):  # what float64 alone holds is infinite
        arrays = [np.asarray(cast(a, dtype)) for a in problem.arrays]

    def function(*nodes):
        return contract.apply(problem, nodes)

    try:
        proto = tg.onnx.to_proto(function, tuple(arrays), batch=False)
    except OnnxError as error:
        assert "as in training" in str(error), error
        return False
    expected = outputs_of(function(*map(tg.Tensor, arrays)))
    ops = {type(node.op) for node in tg.Graph(*expected).nodes if node.op is not None}
    told = {kind for op in ops for kind in TABLE.operators(op)}
    assert {node.op_type for node in proto.graph.node} <= told | {"Constant", "Identity"}
    for got, y in zip(runtimes.run(proto, *arrays), expected, strict=True):
        runtimes.close(got, y.numpy())
    return True


@pytest.mark.parametrize("name", ALL)
def test_onnxruntime_gives_the_same(name):
    compared = [compare(ALL[name], problem, np.float32) for problem in problems(name, 2)]
    assert any(compared) or name == "TestDropout"


@pytest.mark.second
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_runtimes_give_the_same_for_more_problems(name, dtype):
    if dtype == np.float64 and name in REFERENCE_ERRS:
        pytest.skip("onnx.reference errs")
    for problem in problems(name, 25):
        compare(ALL[name], problem, dtype)


# Conventions that onnxruntime has others of: see docs/onnx.md, "What differs".
OTHERS = {
    "a mean of nothing is 0": {
        *[f"Test{name}Loss: the mean of nothing" for name in ("L1", "Mse", "Huber", "SmoothL1")],
        "TestBinaryCrossEntropy: the mean of nothing",
        "TestHalfSquaredError: the mean of nothing",
        "TestKlDiv: nothing",
    },
    "a NaN is passed over": {
        "TestArgmax: the first NaN",
        "TestArgmin: the first NaN",
        "TestGruLayer: NaN",
        "TestMax: NaN",
        "TestMin: NaN",
    },
    "-inf times 0 is NaN": {"TestHardswish: edges", "TestMish: edges", "TestSilu: edges"},
}


@pytest.mark.second
@pytest.mark.parametrize("name", [name for name, c in ALL.items() if c.conventions])
def test_conventions_at_the_edges_are_those_of_onnxruntime_too(name):
    contract, other = ALL[name], set().union(*OTHERS.values())
    for convention in contract.conventions:
        if f"{name}: {convention.name}" in other:
            continue
        args = tuple(None if a is None else np.asarray(a) for a in convention.args)
        compare(contract, Problem(args, convention.kwargs), np.float32)


@pytest.mark.second
@pytest.mark.parametrize("name", ALL)
def test_a_file_takes_another_number_of_samples(name):
    """Of problems whose op says that it keeps samples apart."""
    contract = ALL[name]
    for problem in problems(name, 4):
        if not any(problem.carries or ()) or contract.claim(problem) != "map":
            continue
        arrays = [np.asarray(cast(a, np.float32)) for a in problem.arrays]
        names = [f"x{i}" for i in range(len(arrays))]
        carried = [n for n, carries in zip(names, problem.carries, strict=True) if carries]

        def function(*nodes, problem=problem):
            return contract.apply(problem, nodes)

        try:
            proto = tg.onnx.to_proto(function, tuple(arrays), input_names=names, batch=carried)
        except OnnxError as error:
            of_a_literal = "leave one size to be found: -1" in str(error)  # reshape(x, (4, 3))
            assert of_a_literal or "as in training" in str(error), error
            continue
        for i, carries in enumerate(problem.carries):
            if carries:
                arrays[i] = arrays[i][np.arange(4) % len(arrays[i])]
        expected = outputs_of(function(*map(tg.Tensor, arrays)))
        for got, y in zip(runtimes.run(proto, *arrays), expected, strict=True):
            runtimes.close(got, y.numpy())
