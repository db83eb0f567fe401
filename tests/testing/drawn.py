"""The op contracts of tests/ops as a source of problems for gradcheck."""

import functools
import importlib
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as hypothesis_seed
from hypothesis import strategies as st

import tinygraph as tg
from tests.op_contract import OpContract, cast

OPS = Path(__file__).parents[1] / "ops"


@functools.cache
def contracts():
    """Every contract of a differentiable function, by the name of its class without "Test"."""
    found = {}
    for path in sorted(OPS.glob("test_*.py")):
        module = importlib.import_module(f"tests.ops.{path.stem}")
        for name, value in vars(module).items():
            own = isinstance(value, type) and issubclass(value, OpContract)
            own = own and hasattr(value, "problems")
            if own and value.__module__ == module.__name__ and value.differentiable:
                found[name.removeprefix("Test")] = value()
    return found


def draw(strategy, count, seed=None):
    """`count` examples; with a seed they are others, without one they are always the same."""
    examples = []

    @settings(
        max_examples=count,
        phases=(Phase.generate,),
        database=None,
        deadline=None,
        derandomize=seed is None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(example):
        examples.append(example)

    test = collect if seed is None else hypothesis_seed(seed)(collect)
    test()
    return examples[:count]


VALUES = ("as drawn", "halves", "integers", "zeros")


def with_values(array, values):
    """Floats rounded so that they tie, and sit on kinks."""
    if array is None or array.dtype.kind != "f" or values == "as drawn":
        return array
    return {
        "halves": lambda: np.round(2 * array) / 2,
        "integers": lambda: np.round(array),
        "zeros": lambda: np.where(np.abs(array) < 1, 0, array),
    }[values]()


@st.composite
def call(draw, contract):
    """A problem, with a dtype and values that may tie."""
    problem = draw(contract.problems)
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    values = draw(st.sampled_from(VALUES))
    return problem, dtype, values


def inputs_of(contract, problem, dtype=np.float64):
    """Tensors for gradcheck, the positions that are differentiated, and the function."""
    arrays = [cast(a, dtype) for a in problem.args if a is not None]
    wrt = [i for i, node in enumerate(contract.leaves(problem)) if node.requires_grad]
    return [tg.Tensor(a) for a in arrays], wrt, lambda *nodes: contract.apply(problem, nodes)
