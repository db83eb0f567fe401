"""Random leaves: their law, that a seed repeats them, and the same numbers on every device."""

import warnings

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base.errors import ArgumentError, DtypeError, PlanWarning, ShapeError
from tinygraph.engine.random import Generator

DRAWS = {
    "rand": lambda **options: tg.rand(50, 20, **options),
    "randn": lambda **options: tg.randn((50, 20), **options),
    "normal": lambda **options: tg.normal(3.0, 0.5, (50, 20), **options),
    "randint": lambda **options: tg.randint(-2, 5, (50, 20), **options),
    "randperm": lambda **options: tg.randperm(1000, **options),
}
MOMENTS = {  # mean and standard deviation by the law
    "rand": (0.5, 12**-0.5),
    "randn": (0, 1),
    "normal": (3, 0.5),
    "randint": (1, 2),
    "randperm": (499.5, (1000**2 / 12) ** 0.5),
}


@pytest.mark.parametrize("name", DRAWS)
def test_moments(name):
    tg.manual_seed(0)
    numbers = DRAWS[name]().value.astype("f8")
    mean, deviation = MOMENTS[name]
    assert abs(numbers.mean() - mean) < 0.1 * deviation
    assert abs(numbers.std() - deviation) < 0.1 * deviation


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_gives_the_same_numbers_on_every_device(name, device):
    tg.manual_seed(3)
    here, next_ones = DRAWS[name](), DRAWS[name]()
    assert (here.value != next_ones.value).any()
    tg.manual_seed(3)
    there = DRAWS[name](device=device)
    assert there.device == device and there.numpy().tobytes() == here.value.tobytes()


@pytest.mark.parametrize("name", DRAWS)
def test_a_generator_of_ones_own_leaves_the_default_one_alone(name):
    before = tg.random.default_generator.state_dict()
    a, b, c = (DRAWS[name](generator=Generator(seed=seed)).value for seed in (1, 1, 2))
    assert a.tobytes() == b.tobytes() != c.tobytes()
    assert tg.random.default_generator.state_dict() == before


def test_dtypes():
    kinds = {name: draw().dtype for name, draw in DRAWS.items()}
    assert {kinds.pop("randint"), kinds.pop("randperm")} == {np.dtype("int64")}
    assert {*kinds.values()} == {np.dtype("float32")}
    for name, draw in DRAWS.items():
        assert draw(dtype=tg.float64).dtype == np.float64, name
    assert tg.rand(3, requires_grad=True).requires_grad


def test_uniform_numbers_stay_below_1():
    """A float64 below 1 can round to a float32 of 1, so that these are drawn as float32."""
    tg.manual_seed(0)
    numbers = tg.rand(1000).value.astype("f8") * 2**24
    assert (numbers == numbers.round()).all() and numbers.max() < 2**24


def test_all_integers_of_the_interval_and_no_other():
    tg.manual_seed(0)
    assert sorted({*tg.randint(-2, 3, (200,)).value.tolist()}) == [-2, -1, 0, 1, 2]
    for x in (tg.randint(3, (200,)), tg.randint(3, size=(200,)), tg.randint(high=3, size=[200])):
        assert sorted({*x.value.tolist()}) == [0, 1, 2]
    assert sorted(tg.randperm(9).value.tolist()) == [*range(9)]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: tg.rand(2, dtype=tg.int64), DtypeError, "rand: dtype: .*got int64.*tg.randint"),
        (lambda: tg.randn(2, dtype=tg.float16), DtypeError, "randn: dtype: .*got float16"),
        (lambda: tg.rand_like([1, 2]), DtypeError, "rand: dtype: expected float32 or float64"),
        (lambda: tg.rand(-1), ArgumentError, "rand: size: expected an int of at least 0"),
        (
            lambda: tg.randint(3, 3, (2,)),
            ArgumentError,
            "randint: high: .* above low, 3, got 3",
        ),
        (lambda: tg.randint(0.5, 3, (2,)), ArgumentError, "randint: low: expected an int"),
        (lambda: tg.normal(0, -1, (2,)), ArgumentError, "std: expected a number of at least 0"),
        (lambda: tg.normal(tg.zeros(2), 1.0), ArgumentError, "normal: mean"),
        (lambda: tg.randperm(-1), ArgumentError, "randperm: n"),
    ],
)
def test_bad_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()


# ---- drawn with given probabilities ---------------------------------------------------------


def test_bernoulli_draws_by_each_probability(device):
    tg.manual_seed(0)
    chance = np.repeat(np.float32([0.0, 0.25, 0.9, 1.0]), 2000)
    y = tg.bernoulli(tg.Tensor(chance, device=device))
    assert y.dtype == np.float32 and y.device == device and set(y.tolist()) == {0.0, 1.0}
    shares = y.numpy().reshape(4, -1).mean(axis=1)
    np.testing.assert_allclose(shares, [0, 0.25, 0.9, 1], atol=0.03)  # three deviations
    assert shares[0] == 0 and shares[3] == 1


def test_bernoulli_of_one_probability():
    x = tg.arange(5000)
    y = x.bernoulli(0.3)
    assert y.dtype == np.int64 and abs(y.numpy().mean() - 0.3) < 0.025 and not y.requires_grad
    assert tg.bernoulli(x, p=1).tolist() == [1] * 5000


@pytest.mark.parametrize("replacement", [True, False])
def test_multinomial_draws_by_the_weights(replacement, device):
    """The first of each row by its weight; without replacement the second by those of the rest."""
    tg.manual_seed(0)
    weights = np.array([3.0, 0.0, 1.0, 4.0])
    x = tg.Tensor(np.tile(weights, (6000, 1)), device=device)
    places = tg.multinomial(x, 2, replacement).numpy()
    assert places.dtype == np.int64 and places.shape == (6000, 2)
    p = weights / 8
    pairs = np.zeros((4, 4))
    np.add.at(pairs, tuple(places.T), 1 / 6000)
    expected = np.outer(p, p) if replacement else p[:, None] * p / (1 - p[:, None])
    if not replacement:
        np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(pairs, expected, atol=0.025)  # three deviations
    assert not pairs[1].any() and not pairs[:, 1].any()


def test_multinomial_of_one_row():
    y = tg.Tensor([0.0, 2.0, 5.0]).multinomial(2)
    assert y.shape == (2,) and sorted(y.tolist()) == [1, 2]
    assert tg.multinomial(input=[1.0], num_samples=3, replacement=True).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: tg.bernoulli(tg.full((99,), 0.5), generator=g),
        lambda g: tg.multinomial(tg.ones(99), 20, generator=g),
    ],
)
def test_what_is_drawn_is_the_generators(draw):
    a, b, c = (draw(Generator(seed=seed)).value for seed in (1, 1, 2))
    assert a.tobytes() == b.tobytes() != c.tobytes()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: tg.bernoulli([0.5, 1.5]), ArgumentError, "x: expected probabilities from 0 to 1"),
        (lambda: tg.bernoulli([np.nan]), ArgumentError, "or NaN"),
        (lambda: tg.bernoulli([1, 0]), DtypeError, "x: expected float32.*got int64.*give p"),
        (lambda: tg.bernoulli([0.5], 2), ArgumentError, "bernoulli: p: expected"),
        (lambda: tg.multinomial([[[1.0]]], 1), ShapeError, r"weights \(K,\) or \(N, K\)"),
        (lambda: tg.multinomial([1, 2], 1), DtypeError, "multinomial: x: expected float32"),
        (lambda: tg.multinomial([1.0, -1.0], 1), ArgumentError, "finite weights of 0 or more"),
        (lambda: tg.multinomial([[1.0], [0.0]], 1), ArgumentError, "not all 0 in a row"),
        (lambda: tg.multinomial([1.0, np.inf], 1), ArgumentError, "finite weights"),
        (lambda: tg.multinomial([1.0, 0.0], 2), ArgumentError, "at most 1, got 2.*replacement"),
        (lambda: tg.multinomial([1.0], 0), ArgumentError, "num_samples"),
    ],
)
def test_probabilities_that_cannot_be(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_each_step_of_a_compiled_function_draws_anew():
    x = tg.full((200,), 0.5)

    @tg.compile
    def step():
        return tg.bernoulli(x) + tg.zeros(200)

    tg.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlanWarning)  # it says that it runs without a plan
        first, second = step().value.copy(), step().value.copy()
    assert (first != second).any()
