"""one_hot against a loop over labels; what is no label."""

import itertools

import numpy as np
from hypothesis import strategies as st

import tinygraph as tg
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.strategies import seeds, shapes
from tinygraph.base.errors import ArgumentError, DtypeError


def one_hot(labels, num_classes=-1):
    classes = int(labels.max()) + 1 if num_classes == -1 else num_classes
    y = np.zeros((*labels.shape, classes), np.int64)
    for place in itertools.product(*map(range, labels.shape)):
        y[(*place, int(labels[place]))] = 1
    return y


@st.composite
def labelled(draw):
    classes, shape = draw(st.integers(1, 5)), draw(shapes(max_dims=2))
    labels = np.random.default_rng(draw(seeds)).integers(0, classes, shape)
    labels = labels.astype(draw(st.sampled_from(["i1", "i4", "i8", "u1"])))
    settings = {"num_classes": classes} if draw(st.booleans()) else {}
    return Problem((labels,), settings, (True,) if shape and settings else None)


class TestOneHot(OpContract):
    function = staticmethod(tg.one_hot)
    reference = staticmethod(one_hot)
    problems = labelled()
    differentiable = False
    conventions = [
        Convention("no label", (np.zeros(0, int),), np.zeros((0, 3)), kwargs={"num_classes": 3})
    ]
    bad_input = [
        Bad("floats", ([1.0],), {}, DtypeError, "one_hot: labels: expected integers"),
        Bad("negative", ([0, -1],), {}, ArgumentError, "labels from 0 to 0, got -1"),
        Bad("too large", ([0, 3], 3), {}, ArgumentError, "labels from 0 to 2, got 3"),
        Bad("no label", (np.zeros(0, int),), {}, ArgumentError, "num_classes=10"),
        Bad("classes", ([0], 0), {}, ArgumentError, "num_classes: expected an int of at least 1"),
    ]

    def test_a_plan_repeats_it(self):
        run = tg.compile(lambda labels: tg.one_hot(labels, 3).astype("float32").sum(0))
        for labels in ([0, 2, 2], [1, 1, 0], [2, 2, 2]):
            expected = [labels.count(c) for c in range(3)]
            assert run(np.array(labels)).numpy().tolist() == expected
        assert "runs as it stands" not in run.explain()
