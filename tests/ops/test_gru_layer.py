"""gru_layer against loops over steps, samples and units."""

import numpy as np

import tinygraph as tg
from tests import reference
from tests.op_contract import Convention, OpContract
from tests.ops.recurrent_layers import bad, large, one_step, sequences

ZEROS, RESULT = one_step(3, 1, 0.0)


class TestGruLayer(OpContract):
    function = staticmethod(tg.gru_layer)
    reference = staticmethod(reference.gru_layer)
    problems = sequences(3, 1)
    large_problems = large(3, 1)
    bad_input = bad(3, 1)
    conventions = [
        Convention("a step of zeros", ZEROS, value=RESULT),
        Convention("NaN", (np.full((1, 1, 3), np.nan), *ZEROS[1:]), value=RESULT * np.nan),
        Convention(
            "saturated",
            (np.full((1, 1, 3), 1000.0), *ZEROS[1:]),
            value=np.array([0.0]).reshape(RESULT.shape),
        ),
    ]
