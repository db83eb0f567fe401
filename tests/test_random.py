"""Philox against its published vectors and numpy; streams, steps and offsets do not overlap."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tests.conftest import DEVICES
from tinygraph.base.errors import ArgumentError
from tinygraph.engine.device import get_device
from tinygraph.engine.memory import Memory
from tinygraph.engine.random import Generator, philox, uniform

words = st.integers(0, 2**64 - 1)


def philox4x64_10(counter, key):
    """One block by the paper's formulas, in Python integers: 10 rounds of multiply and mix."""
    mask, (c0, c1, c2, c3), (k0, k1) = 2**64 - 1, counter, key
    for _ in range(10):
        p0, p1 = 0xD2E7470EE14C6C93 * c0, 0xCA5A826395121157 * c2
        c0, c1, c2, c3 = (p1 >> 64) ^ c1 ^ k0, p1 & mask, (p0 >> 64) ^ c3 ^ k1, p0 & mask
        k0, k1 = (k0 + 0x9E3779B97F4A7C15) & mask, (k1 + 0xBB67AE8584CAA73B) & mask
    return c0, c1, c2, c3


def test_published_vector():
    """Random123's known answer for counter 0, key 0."""
    assert [hex(v) for v in philox(0, 0).random_raw(4).tolist()] == [
        "0x16554d9eca36314c",
        "0xdb20fe9d672d0fdc",
        "0xd7e772cee186176b",
        "0x7e68b68aec7ba23b",
    ]


@given(seed=words, stream=words, step=words, block=st.integers(0, 2**100))
def test_any_block_equals_the_paper(seed, stream, step, block):
    counter = (block & (2**64 - 1), block >> 64, step, 0)
    expected = philox4x64_10(counter, (seed, stream))
    assert tuple(philox(seed, stream, step, block).random_raw(4).tolist()) == expected


@given(count=st.integers(0, 40), first=st.integers(0, 40), dtype=st.sampled_from(["f4", "f8"]))
def test_a_part_of_a_stream_is_a_part_of_its_numbers(count, first, dtype):
    whole = uniform((first + count,), dtype, seed=3, stream=1, step=2)
    part = uniform((count,), dtype, seed=3, stream=1, step=2, first=first)
    np.testing.assert_array_equal(part, whole[first:])
    assert part.dtype == dtype


def test_uniform_numbers():
    x = uniform((10_000,), np.float64, seed=0, stream=0)
    words_ = philox(0, 0).random_raw(10_000)
    assert x.tolist() == [int(w) // 2**11 / 2**53 for w in words_]
    assert x.min() >= 0 and x.max() < 1
    assert abs(x.mean() - 0.5) < 4 / np.sqrt(12 * len(x))  # four standard errors
    y = uniform((10_000,), np.float32, seed=0, stream=0)
    assert np.all(y <= x) and np.all(x - y < 2.0**-24) and y.max() < 1


def launch_uniform(out, seed, stream, step, first, check=False):
    kernel = tg.cuda.op_kernel("random", "uniform", out.dtype)
    run = kernel.check if check else kernel
    start = np.empty(0, np.uint64)  # a null pointer: the stream as it is given
    return run(2, 256, tg.cuda.Out(out), out.size, seed, stream, step, first, start)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(seed=words, stream=words, step=words, count=st.integers(1, 40), first=st.integers(0, 2**62))
def test_the_kernel_gives_numpys_bits(dtype, seed, stream, step, count, first):
    out = np.empty(count, dtype)
    launch_uniform(out, seed, stream, step, first)
    expected = uniform((count,), dtype, seed, stream, step, first)
    assert out.tobytes() == expected.tobytes()


@pytest.mark.parametrize("first", [0, 3, 2**33 + 1])
@pytest.mark.parametrize("count", [1, 4, 2047, 2048, 2053, 6001])
def test_the_kernel_writes_every_element_once(count, first):
    """More blocks of four words than threads, and parts of blocks at both ends."""
    out = np.empty(count, np.float32)
    report = launch_uniform(out, 5, 6, 7, first, check=True)
    assert report.ok, report.text()
    assert out.tobytes() == uniform((count,), np.float32, 5, 6, 7, first).tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (0, 3), (1000, 7)])
def test_memory_gives_the_same_numbers_on_every_device(shape, dtype):
    seen = set()
    for name in DEVICES:
        device = get_device(name)
        memory = Memory(device, ())
        tg.manual_seed(11)
        memory.random((5,))  # an empty draw takes a stream as well
        draws = [memory.random(shape, dtype), memory.random((9,), dtype)]
        assert draws[0].shape == shape and draws[0].dtype == dtype
        seen.add(b"".join(device.to_numpy(draw).tobytes() for draw in draws))
    assert len(seen) == 1


def test_streams_and_steps_differ():
    draws = [uniform((8,), "f8", s, t, u).tobytes() for s in (0, 1) for t in (0, 1) for u in (0, 1)]
    assert len(set(draws)) == 8


def test_generator_resumes():
    a = Generator(seed=5)
    a.numpy(), a.numpy()
    b = Generator()
    b.load_state_dict(a.state_dict())
    assert a.numpy().random() == b.numpy().random()


def test_generator_as_pytorch_writes_it():
    mine = tg.Generator(device="cpu")
    assert mine.manual_seed(7) is mine and mine.initial_seed() == 7 and mine.device == "cpu"
    assert tg.Generator(seed=7).state_dict() == mine.state_dict()
    with pytest.raises(ArgumentError, match="device: name"):
        tg.Generator("7")


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "1"])
def test_bad_seed(seed):
    with pytest.raises(ArgumentError, match="manual_seed: seed"):
        tg.manual_seed(seed)
