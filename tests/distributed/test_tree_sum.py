"""The order of sums: one tree, whoever holds its leaves."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tinygraph.distributed.tree_sum import TreeSum, nodes_of, share


def tree(first, stop, size):
    """The tree over shards first ... stop by halving: the left half is the larger power of two."""
    if stop - first == 1:
        return str(first)
    half = first + size // 2
    if half >= stop:
        return tree(first, stop, size // 2)
    return f"({tree(first, half, size // 2)}+{tree(half, stop, size // 2)})"


def expected(shards):
    return tree(0, shards, 1 << (shards - 1).bit_length())


def joined(left, right):
    return f"({left}+{right})"


@given(st.integers(1, 40))
def test_one_process_adds_in_the_order_of_the_tree(shards):
    whole = TreeSum(shards, joined)
    for shard in range(shards):
        whole.put((0, shard), str(shard))
        assert len(whole.nodes) <= shards.bit_length()  # few sums are held at a time
    assert [sum_ for _, sum_ in whole.nodes] == [expected(shards)]


@given(st.integers(1, 40), st.integers(1, 12))
def test_any_number_of_ranks_finishes_the_same_tree(shards, ranks):
    whole = TreeSum(shards, joined)
    for rank in range(ranks):
        first, stop = share(shards, rank, ranks)
        own = TreeSum(shards, joined)
        for shard in range(first, stop):
            own.put((0, shard), str(shard))
        assert [node for node, _ in own.nodes] == nodes_of(first, stop, shards)
        for node, term in own.nodes:
            whole.put(node, term)
    assert [sum_ for _, sum_ in whole.nodes] == [expected(shards)]


@given(st.integers(0, 1000), st.integers(1, 20))
def test_shares_are_side_by_side_and_differ_by_one_at_most(total, size):
    shares = [share(total, rank, size) for rank in range(size)]
    assert shares[0][0] == 0 and shares[-1][1] == total
    assert all(a[1] == b[0] for a, b in pairwise(shares))
    sizes = {stop - first for first, stop in shares}
    assert max(sizes) - min(sizes) <= 1


def test_a_power_of_two_is_a_whole_part_of_the_tree():
    for shards in (4, 8, 16):
        for ranks in (1, 2, 4):
            for rank in range(ranks):
                assert len(nodes_of(*share(shards, rank, ranks), shards)) == 1


def test_floats_add_up_to_the_same_bits():
    terms = np.random.default_rng(0).standard_normal((11, 1000)).astype(np.float32)
    whole = TreeSum(11, np.add)
    for shard, term in enumerate(terms):
        whole.put((0, shard), term)
    a, b, c, d, e, f, g, h, i, j, k = terms
    by_hand = (((a + b) + (c + d)) + ((e + f) + (g + h))) + ((i + j) + k)
    assert whole.nodes[0][1].tobytes() == by_hand.tobytes()
