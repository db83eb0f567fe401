"""Places in an arena: what is in use at the same time never shares memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tinygraph.plan.buffers import ALIGNMENT, arrays_in, lay_out, owner

SPANS = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 6), st.integers(0, 1000)), max_size=20
).map(lambda drawn: [(first, first + more, size) for first, more, size in drawn])


@given(SPANS)
def test_spans_that_overlap_in_time_do_not_overlap_in_memory(spans):
    offsets, total = lay_out(spans)
    assert len(offsets) == len(spans)
    for i, (first, last, size) in enumerate(spans):
        assert offsets[i] % ALIGNMENT == 0 and offsets[i] + size <= total
        for j in range(i):
            apart = spans[j][1] < first or last < spans[j][0]
            below = offsets[i] + size <= offsets[j] or offsets[j] + spans[j][2] <= offsets[i]
            assert apart or below or not size or not spans[j][2]


@given(SPANS)
def test_the_arena_is_no_larger_than_all_of_them_and_no_smaller_than_any_moment(spans):
    def rounded(size):
        return -(-size // ALIGNMENT) * ALIGNMENT

    total = lay_out(spans)[1]
    busiest = max(
        (sum(rounded(s) for a, b, s in spans if a <= t <= b) for t in range(20)), default=0
    )
    assert busiest <= total <= sum(rounded(size) for _, _, size in spans)


def test_the_owner_of_a_view_of_a_view():
    x = np.arange(12.0)
    assert owner(x.reshape(3, 4)[1:].T) is x and owner(x) is x and owner(None) is None


def test_arrays_in_what_an_op_has_saved():
    x, y = np.zeros(2), np.ones(3)
    assert [a is x or a is y for a in arrays_in((x, [y, {"k": x}], 3, None, "s"))] == [True] * 3
    assert list(arrays_in((object(),))) == [None]


@pytest.mark.parametrize("depth", [4, 20])
def test_a_deep_chain_without_backward_takes_two_buffers(depth):
    """Without gradients nothing is saved: a value lives until the next op has read it."""

    def chain(x):
        for _ in range(depth):
            x = tg.exp(x)
        return x

    run = tg.compile(chain)
    x = np.full((1000,), -1.0, np.float32)
    with tg.no_grad():
        run(x)
        np.testing.assert_allclose(run(x).value, chain(x).value)
    plan = run._found[0].plans[0]
    arena, requested = plan.bytes_of_buffers()
    assert requested == depth * 4000 and arena == 2 * 4032
