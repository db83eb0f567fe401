"""What a page keeps of arrays: exactly, each once, and no more than fits."""

import numpy as np
import pytest

from tests.show.stepping.pages import array_of, same_bits, whole
from tinygraph.show.stepping.arrays import BUDGET, MOST, Arrays, corner, places


def page_of(*given):
    arrays = Arrays()
    numbers = [arrays.add(a) for a in given]
    return {"arrays": arrays.to_json()}, numbers


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i4", "i8", "u1", "u4", "?"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 0)])
def test_numbers_come_back_exactly(dtype, shape):
    array = (np.random.default_rng(1).standard_normal(shape) * 9).astype(np.float64)
    array = np.asarray(np.abs(array) if dtype in ("u1", "u4") else array).astype(dtype)
    data, (number,) = page_of(array)
    assert same_bits(whole(data, number), array)


def test_signed_zeros_nan_and_infinities_too():
    array = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-45], np.float32)
    data, (number,) = page_of(array)
    assert same_bits(whole(data, number), array)
    assert (data["arrays"][0]["low"], data["arrays"][0]["high"]) == (0.0, float(array[-1]))


def test_views_in_any_order_of_memory():
    array = np.arange(24.0).reshape(4, 6)[::-2, ::3].T
    data, (number,) = page_of(array)
    assert same_bits(whole(data, number), np.ascontiguousarray(array))


def test_equal_arrays_are_there_once_and_others_are_not_confused():
    zeros = np.zeros(4, np.float32)
    data, numbers = page_of(zeros, zeros.copy(), zeros.reshape(2, 2), -zeros, zeros.astype("i4"))
    assert numbers == [0, 0, 1, 2, 3] and len(data["arrays"]) == 4
    assert same_bits(whole(data, 2), -zeros)


def test_an_array_is_as_it_was_when_it_was_added():
    array = np.ones(3, np.float32)
    arrays = Arrays()
    arrays.add(array)
    array[:] = 5
    assert arrays.add(array) == 1
    assert array_of({"arrays": arrays.to_json()}, 0).tolist() == [1, 1, 1]


@pytest.mark.parametrize("shape", [(1000, 3, 32, 32), (70, 500), (4097,), (2, 1, 9000), (64, 64)])
def test_a_corner_is_the_beginning_of_the_array_in_memory(shape):
    part = corner(shape, MOST)
    assert np.prod(part) <= MOST and all(p <= n for p, n in zip(part, shape, strict=True))
    numbers = np.arange(np.prod(shape)).reshape(shape)
    assert numbers[tuple(slice(0, n) for n in part)].ravel().tolist() == list(range(np.prod(part)))


@pytest.mark.parametrize(
    ("shape", "part"),
    [
        ((3, 224, 224), (1, 64, 64)),
        ((8, 200, 40), (1, 102, 40)),
        ((2, 16, 40, 1000), (1, 1, 40, 102)),
        ((4096, 25088), (64, 64)),
        ((27, 50176), (27, 151)),
    ],
)
def test_of_a_large_image_or_matrix_the_upper_left_part_is_kept(shape, part):
    assert corner(shape, MOST) == part


def test_places_in_a_corner_are_those_of_the_elements():
    array = np.arange(6 * 50 * 90).reshape(6, 50, 90)
    kept = corner(array.shape, 500)
    part = array[tuple(slice(0, n) for n in kept)]
    index = np.random.default_rng(3).permutation(array.size)
    inside, at = places(index, array.shape, kept)
    assert inside.tolist() == np.isin(index, part).tolist() and inside.sum() == part.size
    assert part.ravel()[at].tolist() == index[inside].tolist()


def test_many_large_arrays_keep_less_of_each():
    rng = np.random.default_rng(2)
    data, _ = page_of(*[rng.standard_normal((8, 16, 64)) for _ in range(100)])
    ((one, rows, width),) = {tuple(entry["kept"]) for entry in data["arrays"]}
    assert one == 1 and 200 < rows * width < 1024 and (rows, width) == (16, rows * width // 16)
    assert all(entry["corner"] == [4, 16, 64] for entry in data["arrays"])
    assert sum(len(entry["data"]) for entry in data["arrays"]) <= BUDGET * 4 / 3 + 400
