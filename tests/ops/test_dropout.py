"""dropout against loops over numpy's own Philox: what is dropped, how often, what repeats it."""

import functools

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.conftest import DEVICES
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import elementwise_problems
from tinygraph.base.errors import ArgumentError, DtypeError

SEED = 20140601
X = np.ones(3)


@functools.wraps(tg.dropout)
def seeded_dropout(*args, **kwargs):
    """The same mask for each call, so that calls can be compared."""
    tg.manual_seed(SEED)
    return tg.dropout(*args, **kwargs)


@st.composite
def dropout_problems(draw):
    problem = draw(elementwise_problems())
    p = draw(st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 0.9)))
    return problem._replace(kwargs={"p": p})


class TestDropout(OpContract):
    function = staticmethod(seeded_dropout)
    reference = staticmethod(reference.seeded_dropout(SEED))
    problems = dropout_problems()
    large_problems = (Problem((np.linspace(-2, 2, 5003),), {"p": 0.3}),)
    bad_input = [
        Bad("p above 1", (X, 1.5), {}, ArgumentError, "p: expected a number from 0 to 1"),
        Bad("p below 0", (X, -0.1), {}, ArgumentError, "got -0.1"),
        Bad("p is NaN", (X, float("nan")), {}, ArgumentError, "p: expected a number from"),
        Bad("p in evaluation", (X, 2), {"training": False}, ArgumentError, "from 0 to 1"),
        Bad("p a word", (X, "half"), {}, ArgumentError, "got 'half'"),
        Bad("integers", ([1, 2],), {}, DtypeError, "float32 or float64"),
        Bad("integers in evaluation", ([1, 2], 0.5, False), {}, DtypeError, "float32 or float64"),
    ]

    def test_evaluation_is_the_input_itself(self):
        x = tg.Tensor(X, requires_grad=True)
        assert tg.dropout(x, 0.9, training=False) is x

    def test_each_evaluation_of_a_graph_draws_anew_and_a_seed_repeats(self):
        graph = tg.Graph(tg.dropout(tg.ones(1000), 0.5))

        def masks():
            tg.manual_seed(3)
            return [graph.forward()[0].value.tobytes() for _ in range(3)]

        first = masks()
        assert len(set(first)) == 3
        assert masks() == first

    def test_the_backward_uses_the_mask_of_the_last_forward(self):
        x = tg.Tensor(np.ones(1000), requires_grad=True)
        graph = tg.Graph(tg.dropout(x, 0.25))
        graph.forward()
        graph.backward(np.ones(1000))
        np.testing.assert_array_equal(x.grad, graph.outputs[0].value)

    def test_float32_and_float64_drop_the_same_elements(self):
        single, double = (seeded_dropout(np.ones(1000, dtype), 0.3).value for dtype in "fd")
        np.testing.assert_array_equal(single != 0, double != 0)

    def test_every_device_drops_the_same_elements_and_visits_the_same_samples(self):
        """A seed repeats a run on another device: masks of both dtypes, and shuffled batches."""
        data = tg.data.ArrayDataset(np.ones((100, 3), np.float32), np.arange(100))
        runs = []
        for device in DEVICES:
            tg.manual_seed(SEED)
            run = []
            for x, labels in tg.data.DataLoader(data, batch_size=30, shuffle=True, seed=3):
                for dtype in (np.float32, np.float64):
                    y = tg.dropout(tg.Tensor(x.astype(dtype), device=device), 0.4)
                    run.append(y.numpy().tobytes())
                run.append(labels.tobytes())
            runs.append(run)
        assert all(run == runs[0] for run in runs)

    def test_what_is_dropped_stays_visible_where_it_is_no_number(self, device):
        x = tg.Tensor(np.tile([np.nan, np.inf, 1.0, -1.0], 50), device=device)
        y = seeded_dropout(x, 0.5).numpy().reshape(50, 4)
        assert np.isnan(y[:, 0]).all()
        assert set(np.unique(y[:, 1][~np.isnan(y[:, 1])])) == {np.inf} and np.isnan(y[:, 1]).any()
        assert set(np.unique(y[:, 2:])) == {-2.0, 0.0, 2.0}

    @pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
    def test_how_many_are_kept(self, p):
        """A binomial count: 5 standard deviations would be a failure in 2 million seeds."""
        n = 100_000
        kept = np.count_nonzero(seeded_dropout(np.ones(n), p).value)
        assert abs(kept - n * (1 - p)) < 5 * np.sqrt(n * p * (1 - p))
        assert set(np.unique(seeded_dropout(np.ones(n), p).value)) == {0, 1 / (1 - p)}

    def test_p_of_1_gives_zeros(self, device):
        x = tg.Tensor([1.0, np.inf, np.nan], requires_grad=True, device=device)
        y = tg.dropout(x, 1)
        np.testing.assert_array_equal(y.value, np.zeros(3))
        y.backward(np.ones(3))
        np.testing.assert_array_equal(x.grad, np.zeros(3))
