"""rnn_layer against loops over steps, samples and units."""

import numpy as np

import tinygraph as tg
from tests import reference
from tests.op_contract import Convention, OpContract
from tests.ops.recurrent_layers import bad, large, one_step, sequences

ZEROS, RESULT = one_step(1, 1, 0.0)


class TestRnnLayer(OpContract):
    function = staticmethod(tg.rnn_layer)
    reference = staticmethod(reference.rnn_layer)
    problems = sequences(1, 1, nonlinearity=["tanh", "relu"])
    large_problems = large(1, 1)
    bad_input = bad(1, 1)
    conventions = [
        Convention("a step of zeros", ZEROS, value=RESULT),
        Convention("NaN", (np.full((1, 1, 1), np.nan), *ZEROS[1:]), value=RESULT * np.nan),
        Convention(
            "saturated",
            (np.full((1, 1, 1), 1000.0), *ZEROS[1:]),
            value=np.array([1.0]).reshape(RESULT.shape),
        ),
    ]
