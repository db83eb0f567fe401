"""einsum against a loop over all axes, and against numpy's where axes are broadcast."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.strategies import numbers, seeds
from tinygraph.base.errors import ArgumentError, ShapeError


def einsum(*arrays, equation):
    """Every combination of indices once; a letter may be of size 1 in an operand."""
    left, _, output = equation.replace(" ", "").partition("->")
    terms, sizes = left.split(","), {}
    for term, array in zip(terms, arrays, strict=True):
        for letter, size in zip(term, array.shape, strict=True):
            sizes[letter] = size if sizes.get(letter, 1) == 1 else sizes[letter]
    sums = {place: [] for place in itertools.product(*[range(sizes[n]) for n in output])}
    for indices in itertools.product(*map(range, sizes.values())):
        at = dict(zip(sizes, indices, strict=True))
        values = []
        for term, array in zip(terms, arrays, strict=True):
            pairs = zip(term, array.shape, strict=True)
            values.append(float(array[tuple(at[n] if size > 1 else 0 for n, size in pairs)]))
        sums[tuple(at[n] for n in output)].append(math.prod(values))
    totals = [math.fsum(values) for values in sums.values()]
    return np.array(totals).reshape([sizes[n] for n in output])


EQUATIONS = [
    "ij->ji",
    "ij->",
    "ij, j -> i",
    "ij, jk -> ik",
    "ij, jk -> ki",
    "nij, njk -> nik",
    "nhqd, nhkd -> nhqk",
    "i, j -> ij",
    "ij, ij -> ij",
    "ij, ij ->",
    "ij, k -> j",
    ", ij -> ji",
    "ab, bc, cd -> ad",
    "abc, cd, bd -> a",
    "ii->i",
    "ii->",
    "iji->ji",
    "iijj, ij -> j",
    "iii->i",
]


@st.composite
def equations(draw):
    equation, shapes = draw(st.sampled_from(EQUATIONS)), []
    sizes = {letter: draw(st.integers(1, 3)) for letter in set(equation) if letter.isalpha()}
    for term in equation.partition("->")[0].replace(" ", "").split(","):
        ones = {letter for letter in sorted(set(term)) if draw(st.integers(0, 5)) == 0}
        shapes.append([1 if n in ones else sizes[n] for n in term])
    return Problem(tuple(numbers(draw(seeds), s) for s in shapes), {"equation": equation})


X, Y = np.ones((2, 3)), np.ones((3, 4))


class TestEinsum(OpContract):
    function = staticmethod(tg.einsum)
    reference = staticmethod(einsum)
    problems = equations()
    conventions = [
        Convention("nothing", (X[:, :0], Y[:0]), np.zeros((2, 4)), kwargs={"equation": "ij,jk"})
    ]
    bad_input = [
        Bad("a letter", ("ij,j->k", X, Y[:, 0]), {}, ArgumentError, "not 'k'"),
        Bad("a sign", ("ij;jk", X), {}, ArgumentError, "letters, at most one ..."),
        Bad("arrows", ("ij->j->", X), {}, ArgumentError, "one ->"),
        Bad("a diagonal", ("ii->i", X), {}, ShapeError, "operand 1: expected 'i' of one size"),
        Bad("one of size 1", ("ii", X[:, :1]), {}, ShapeError, "for it is a diagonal"),
        Bad("the output twice", ("ij->ii", X), {}, ArgumentError, "'i' twice"),
        Bad("operands", ("ij,jk", X), {}, ArgumentError, "operands: expected 2"),
        Bad("no equation", (X, Y), {}, ArgumentError, "a string, before the operands"),
        Bad("axes", ("ijk,jk", X, Y), {}, ShapeError, "operand 1: expected 3 axes, 'ijk'"),
        Bad("sizes", ("ij,jk", X, X), {}, ShapeError, "operand 2: expected 'j' of size 3"),
        Bad("dots", ("ij->...", X), {}, ArgumentError, "... in an operand too"),
    ]

    def apply(self, problem, nodes):
        return tg.einsum(problem.kwargs["equation"], *nodes)

    def try_bad_input(self, bad, device="cpu"):
        equation, *arrays = bad.args
        if device != "cpu":
            arrays = [tg.Tensor(a, device=device) for a in arrays]
        with pytest.raises(bad.error) as error:
            tg.einsum(equation, *arrays)
        assert bad.words in str(error.value)


@pytest.mark.parametrize(
    "equation, shapes",
    [
        ("bA", [(2, 3)]),
        ("i,i", [(3,), (3,)]),
        ("...ij,...jk", [(5, 2, 3), (3, 4)]),
        ("...ij, ...jk -> ...ik", [(5, 1, 2, 3), (4, 3, 2)]),
        ("a...b, b...c -> a...c", [(2, 3, 4), (4, 3, 5)]),
        ("b... -> ...", [(2, 3, 4)]),
        ("..., ...", [(2, 3), (3,)]),
        ("ii", [(3, 3)]),
        ("...ii->...i", [(2, 4, 4)]),
        ("i...i", [(3, 2, 3)]),
    ],
)
def test_further_axes_and_implicit_outputs(equation, shapes, device):
    arrays = [numbers(seed, shape) for seed, shape in enumerate(shapes)]
    y = tg.einsum(equation, *[tg.Tensor(a, device=device) for a in arrays])
    np.testing.assert_allclose(y.numpy(), np.einsum(equation, *arrays), rtol=1e-12, atol=1e-13)


def test_a_list_of_operands_and_mixed_dtypes():
    y = tg.einsum("ij,jk", [X.astype("f4"), Y])
    assert y.dtype == np.float64 and y.value.tolist() == (X @ Y).tolist()
