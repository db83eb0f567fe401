"""Each suspicion of the diagnosis by an op of a few lines with that one mistake."""

import numpy as np
import pytest

import tinygraph as tg
from tests.testing.test_gradcheck import gradcheck, op_of
from tinygraph.testing.broken_op import wrong_shape

RNG = np.random.default_rng(3)
X = RNG.standard_normal((8, 5))
SQUARE = RNG.standard_normal((4, 4))
scalar = lambda *specs: tg.Spec((), specs[0].dtype)  # noqa: E731
rows = lambda x: tg.Spec(x.shape[1:], x.dtype)  # noqa: E731
product = lambda a, b: tg.Spec((a.shape[0], b.shape[1]), a.dtype)  # noqa: E731
square = lambda x: x * x  # noqa: E731


def softmax(x):
    e = np.exp(x)
    return e / e.sum(-1, keepdims=True)


def centred(x):
    return x - x.mean(1, keepdims=True)


@pytest.mark.parametrize(
    "forward, backward, infer, inputs, words",
    [
        (square, lambda gy, x: (0 * x,), None, [X], "all zero"),
        (square, lambda gy, x: (2 * x,), None, [X], "ignores the upstream gradient"),
        (square, lambda gy, x: (gy.mean() * 2 * x,), None, [X], "takes the mean of the upstream"),
        (square, lambda gy, x: (-2 * gy * x,), None, [X], "has the wrong sign"),
        (square, lambda gy, x: (gy * x,), None, [X], "half of what it should be"),
        (square, lambda gy, x: (2.002 * gy * x,), None, [X], "+0.1 % off everywhere"),
        (
            lambda x: np.asarray(x.sum()),
            lambda gy, x: (gy * np.ones(x.shape) / 8,),
            scalar,
            [X],
            "N = 8 times too small (N is axis 0 of input 0): the backward divides by N",
        ),
        (
            lambda x: x.mean(0),
            lambda gy, x: (gy * np.ones(x.shape),),
            rows,
            [X],
            "N = 8 times too large (N is axis 0 of input 0): the forward takes the mean over N",
        ),
        (
            lambda a, b: a @ b,
            lambda gy, a, b: ((gy @ b.T).T.copy(), a.T @ gy),
            product,
            [SQUARE, SQUARE + 1],
            "transposed",
        ),
        (square, lambda gy, x: ((2 * gy * x)[:, ::-1].copy(),), None, [X], "flipped along axis 1"),
        (
            lambda x: x.mean(0),
            lambda gy, x: (gy[:1] * np.ones(x.shape) / 8,),
            rows,
            [X],
            "first element of the upstream|sample 0",
        ),
        (
            lambda a, b: a @ b,
            lambda gy, a, b: (gy @ b.T, a[:1].T @ gy[:1]),
            product,
            [SQUARE, SQUARE + 1],
            "counts sample 0 only: sum over axis 0 of the output (4)",
        ),
        (square, lambda gy, x: (np.roll(2 * gy * x, 1, 1),), None, [X], "shifted by (0, 1)"),
        (np.tanh, lambda gy, x: (gy.copy(),), None, [X], "as it came"),
        (lambda a, b: a * b, lambda gy, a, b: (gy * a, gy * b), None, [X, X + 1], "wrong order"),
        (softmax, lambda gy, x: (gy * softmax(x),), None, [X], "lacks the path through the sum"),
        (centred, lambda gy, x: (gy.copy(),), None, [X], "lacks the path through the mean"),
        (lambda x: np.maximum(x, 0), lambda gy, x: (gy.copy(),), None, [X], "mask of the forward"),
        (lambda x: np.maximum(x, 0), lambda gy, x: (gy * (x < 0),), None, [X], "wrong way round"),
        (
            lambda a, b: a * b * b,
            lambda gy, a, b: (gy * b, 2 * gy * a * b),
            None,
            [X, X + 3],
            "lacks the factor input 1",
        ),
        (square, lambda gy, x: (2 * gy * x + 1,), None, [X], "zeros gives|too large everywhere"),
        (
            lambda x: np.where(x < 0, x * x, x),
            lambda gy, x: (np.where(x < 0, gy * x**3, gy),),
            None,
            [X],
            "wrong only where the input is below 0",
        ),
        (
            square,
            lambda gy, x: (2 * gy * x * np.where(np.arange(8) == 7, 1.3, 1)[:, None],),
            None,
            [X],
            "at the border only, at the last index of axis 0 (8)",
        ),
        (
            square,
            lambda gy, x: (2 * gy * x * np.where(np.arange(8) == 4, 1.3, 1)[:, None],),
            None,
            [X],
            "wrong only for the indices 4 of axis 0",
        ),
        (
            lambda x: np.cumsum(x, 1),
            lambda gy, x: (np.cumsum(gy, 1),),
            None,
            [X],
            "the Jacobian was not transposed",
        ),
    ],
)
def test_suspicion(forward, backward, infer, inputs, words):
    report = gradcheck(
        op_of(forward, backward, infer=infer and (lambda self, *s: infer(*s))), *inputs
    )
    assert report.verdict == "fail"
    assert any(w in report.diagnosis for w in words.split("|")), report.diagnosis


def test_overwritten():
    class Windows(tg.Op):
        """Windows of 3 with stride 1."""

        def infer(self, x):
            return tg.Spec((x.shape[0] - 2, 3), x.dtype)

        def forward(self, mem, x):
            return np.stack([x[i : i + 3] for i in range(len(x) - 2)]), x.shape

        def backward(self, mem, gy, shape, needs):
            gx = np.zeros(shape)
            for i, g in enumerate(gy):
                gx[i : i + 3] = g
            return (gx,)

    assert "is overwritten where windows overlap" in gradcheck(Windows(), X[:, 0]).diagnosis


def test_what_nothing_explains_is_told_by_the_worst_element():
    noise = RNG.standard_normal(X.shape)
    report = gradcheck(op_of(square, lambda gy, x: (2 * gy * x * noise,)), X)
    assert str(list(report.worst.element)) in report.diagnosis
    assert "finite differences give" in report.diagnosis


@pytest.mark.parametrize(
    "expected, got, words",
    [
        ((4,), (3, 4), "sum the gradient over axis 0"),
        ((1, 4), (3, 4), "sum the gradient over axis 0"),
        ((2, 3), (3, 2), "transposed"),
        ((2, 3), (6,), "reshape"),
        ((3, 4), (4,), "the input was not"),
        ((3, 4), (5,), "has the shape of its input"),
    ],
)
def test_wrong_shapes(expected, got, words):
    assert words in wrong_shape("op", 0, expected, got, (9, 9))
