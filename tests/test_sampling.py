"""Random leaves: their law, that a seed repeats them, and the same numbers on every device."""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.errors import ArgumentError, DtypeError
from tinygraph.random import Generator

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
