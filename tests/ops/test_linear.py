"""linear against loops over rows and features."""

import numpy as np

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import linear_problems, numbers
from tinygraph.base.errors import DtypeError, ShapeError


def large(x_shape, out, bias=True):
    b = numbers(3, (out,)) if bias else None
    return Problem((numbers(1, x_shape), numbers(2, (out, x_shape[-1])), b))


X, W = np.ones((2, 3)), np.ones((4, 3))


class TestLinear(OpContract):
    function = staticmethod(tg.linear)
    reference = staticmethod(reference.linear)
    problems = linear_problems()
    large_problems = (
        large((3, 3100), 17),  # sums over features that are cut into chunks
        large((2, 17, 2052), 3),  # few outputs: two chunks of features, two blocks of rows
        large((5, 2049), 16, bias=False),  # one number at a time
        large((66, 35), 70),  # several register tiles, with edges
        large((5, 13, 19), 16, bias=False),
        large((9, 40), 14),  # one shared tile
        large((3100, 2), 33),  # sums over rows that are cut into chunks
    )
    bad_input = [
        Bad("features", (X, W[:, :2]), {}, ShapeError, "2 features on the last axis"),
        Bad("0-d", (1.0, W.astype("f4")), {}, ShapeError, "3 features on the last axis"),
        Bad("weights", (X, W[0]), {}, ShapeError, "w: expected 2 axes (O, I)"),
        Bad("bias", (X, W, np.ones(3)), {}, ShapeError, "b: expected shape (4,)"),
        Bad("dtype", (X.astype("f4"), W), {}, DtypeError, "w: expected float32, the dtype of x"),
        Bad("integers", (X.astype(int), W), {}, DtypeError, "float32 or float64"),
    ]

    def test_a_long_sum_with_a_bias_is_shared_by_blocks(self, kernel_device):
        """5 chunks of whole numbers, for which any order of adding is exact; one bias in all."""
        rng = np.random.default_rng(0)
        x, w, b = (rng.integers(-4, 5, shape).astype("f4") for shape in ((3, 5127), (17, 5127), 17))
        nodes = [tg.Tensor(t, device=kernel_device) for t in (x, w, b)]
        with tg.cuda.recording() as launches:
            y = tg.linear(*nodes)
        assert [launch.kernel.name for launch in launches] == [
            "linear_forward<float>",
            "column_sums<float>",
        ]
        assert launches[0].grid == (1, 5, 1)
        np.testing.assert_array_equal(y.numpy(), x @ w.T + b)

    def test_few_outputs_of_long_rows_have_a_kernel_of_their_own(self, kernel_device):
        """Whole numbers again; four are read at a time, and where 4 does not divide them, one."""
        rng = np.random.default_rng(0)
        for features in (4100, 4101):
            shapes = (3, features), (2, features), 2
            x, w, b = (rng.integers(-4, 5, shape).astype("f4") for shape in shapes)
            nodes = [tg.Tensor(t, device=kernel_device) for t in (x, w, b)]
            with tg.cuda.recording() as launches:
                y = tg.linear(*nodes)
            names = [launch.kernel.name for launch in launches]
            assert names == ["linear_few_outputs<float>", "column_sums<float>"]
            assert launches[0].grid == (3, 1, 1)
            np.testing.assert_array_equal(y.numpy(), x @ w.T + b)
