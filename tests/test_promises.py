"""The usual mistakes of a first op are told in a sentence that says what to write."""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base.errors import GradcheckError
from tinygraph.engine.promises import BrokenOpError

RIGHT = {
    "forward": lambda self, mem, x: (x * x, x),
    "backward": lambda self, mem, gy, x, needs: (2 * gy * x,),
}
ALONE = r"forward of square returned its output alone, not the .* write `return y, saved`"


def square(**methods):
    """x^2 with another forward or backward."""
    return type("Square", (tg.Op,), RIGHT | methods)()


@pytest.mark.parametrize("rows", [2, 3])
@pytest.mark.parametrize(
    ("methods", "sentence"),
    [
        ({"forward": lambda self, mem, x: x * x}, ALONE),
        (
            {"forward": lambda self, mem, x: (x, x, x)},
            "forward of square returned a tuple of 3, not the output with `saved`",
        ),
        (
            {"forward": lambda self, mem, x: None},
            "forward of square returned nothing: its last line has to be `return y, saved`",
        ),
        (
            {"forward": lambda self, x: (x * x, x)},
            r"forward of square does not take .* `def forward\(self, mem, \*arrays\)`",
        ),
        (
            {"backward": lambda self, mem, gy, x, needs: 2 * gy * x},
            "backward of square returned a bare ndarray, .* write `return \\(gx,\\)`",
        ),
        (
            {"backward": lambda self, mem, gy, x, needs: None},
            "backward of square returned nothing: its last line has to be `return \\(gx,\\)`",
        ),
        (
            {"backward": lambda self, mem, gy, x: (2 * gy * x,)},
            r"backward of square does not take .* `def backward\(self, mem, gy, saved, needs\)`",
        ),
    ],
)
def test_what_is_forgotten_is_named(methods, sentence, rows):
    """With two rows Python takes an array apart without a word."""
    x = tg.Tensor(np.ones((rows, 3)), requires_grad=True)
    with pytest.raises(BrokenOpError, match=f"^{sentence}"):
        square(**methods)(x).backward(np.ones((rows, 3)))


@pytest.mark.parametrize("method", ["forward", "backward"])
def test_an_error_within_the_body_stays_what_it_is(method):
    def body(self, mem, *arguments):
        raise TypeError("takes 2 positional arguments") from KeyError("why")

    x = tg.Tensor([1.0], requires_grad=True)
    with pytest.raises(TypeError, match="positional") as caught:
        square(**{method: body})(x).backward([1.0])
    assert isinstance(caught.value.__cause__, KeyError)


class Product(tg.Op):
    """a @ b; a factor of each gradient is not transposed, where `wrong` says so."""

    def __init__(self, wrong):
        self.wrong = wrong

    def infer(self, a, b):
        return tg.Spec((a.shape[0], b.shape[1]), a.dtype)

    def forward(self, mem, a, b):
        return a @ b, (a, b)

    def backward(self, mem, gy, saved, needs):
        a, b = saved
        return gy @ (b if self.wrong == 0 else b.T), (a if self.wrong == 1 else a.T) @ gy


def product_of(wrong, *shapes):
    rng = np.random.default_rng(0)
    return tg.testing.gradcheck(Product(wrong), [rng.standard_normal(shape) for shape in shapes])


@pytest.mark.parametrize("wrong", [0, 1])
def test_a_factor_that_is_not_transposed_does_not_fit(wrong):
    with pytest.raises(GradcheckError, match=r"do not fit .* they are gy @ b\.T and a\.T @ gy"):
        product_of(wrong, (2, 3), (3, 4))


@pytest.mark.parametrize(("wrong", "words"), [(0, r"gy @ input 1\.T"), (1, r"input 0\.T @ gy")])
def test_a_square_factor_that_is_not_transposed_is_diagnosed(wrong, words):
    with pytest.raises(GradcheckError, match=f"transpose that factor, {words}"):
        product_of(wrong, (3, 3), (3, 3))


def test_the_right_product_passes():
    assert product_of(None, (2, 3), (3, 4)).ok
