"""lstm_layer against loops over steps, samples and units."""

import numpy as np

import tinygraph as tg
from tests import reference
from tests.op_contract import Convention, OpContract
from tests.ops.recurrent_layers import bad, large, one_step, sequences

ZEROS, RESULT = one_step(4, 2, 0.0)


class TestLstmLayer(OpContract):
    function = staticmethod(tg.lstm_layer)
    reference = staticmethod(reference.lstm_layer)
    problems = sequences(4, 2)
    large_problems = large(4, 2)
    bad_input = bad(4, 2)
    conventions = [
        Convention("a step of zeros", ZEROS, value=RESULT),
        Convention("NaN", (np.full((1, 1, 4), np.nan), *ZEROS[1:]), value=RESULT * np.nan),
        Convention(
            "saturated",
            (np.full((1, 1, 4), 1000.0), *ZEROS[1:]),
            value=np.array([np.tanh(1.0), 1.0]).reshape(RESULT.shape),
        ),
    ]
