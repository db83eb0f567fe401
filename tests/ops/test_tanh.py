"""tanh against Python's math, and far from 0."""

import numpy as np

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import elementwise_problems
from tests.unary_contract import IntegersToFloats
from tinygraph.base.errors import DtypeError


class TestTanh(IntegersToFloats, OpContract):
    function = staticmethod(tg.tanh)
    reference = staticmethod(reference.tanh)
    problems = elementwise_problems()
    large_problems = (Problem((np.linspace(-4, 4, 1000),)),)
    bad_input = [Bad("float16", (np.ones(2, "f2"),), {}, DtypeError, "tanh: x: expected float32")]
