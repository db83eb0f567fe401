"""The stand-in for CuPy is as strict as the real one: pools, streams, hidden waits, failures."""

import numpy as np
import pytest

import tinygraph as tg

pytestmark = pytest.mark.stand_in


@pytest.fixture(autouse=True)
def cupy(rehearsed_cuda):
    return rehearsed_cuda


@pytest.fixture
def streams(cupy):
    from cupy import _stream

    return _stream


@pytest.fixture
def pool(cupy):
    """A pool of which nobody else has a block."""
    pool = cupy.cuda.MemoryPool()
    with cupy.cuda.using_allocator(pool.malloc):
        yield pool


def at(array):
    return array.data.ptr


# ---- memory ---------------------------------------------------------------------------------


@pytest.mark.second
def test_a_freed_block_is_split_and_merged(cupy, pool):
    large = cupy.empty(4096, "u1")
    start = at(large)
    del large
    first, second = cupy.empty(512, "u1"), cupy.empty(1000, "u1")
    assert (at(first), at(second)) == (start, start + 512)
    del first, second
    assert at(cupy.empty(4096, "u1")) == start and pool.total_bytes() == 4096


@pytest.mark.second
def test_the_smallest_block_that_is_large_enough(cupy, pool):
    blocks = [cupy.empty(size, "u1") for size in (8192, 2048, 4096)]
    starts = [at(block) for block in blocks]
    del blocks
    assert at(cupy.empty(1500, "u1")) == starts[1]


@pytest.mark.second
def test_a_block_belongs_to_the_stream_it_was_allocated_in(cupy, pool):
    with cupy.cuda.Stream(non_blocking=True) as stream:
        start = at(cupy.empty(1 << 16, "u1"))  # dropped at once
    assert at(cupy.empty(1 << 16, "u1")) != start
    handle = stream.ptr
    del stream
    with cupy.cuda.Stream(non_blocking=True) as another:  # with the handle of the one that is gone
        assert another.ptr == handle and at(cupy.empty(1 << 16, "u1")) == start


@pytest.mark.second
def test_a_split_block_does_not_go_back_to_the_driver(cupy, pool):
    large = cupy.empty(4096, "u1")
    del large
    part = cupy.empty(512, "u1")
    pool.free_all_blocks()
    assert pool.total_bytes() == 4096
    del part
    pool.free_all_blocks()
    assert pool.total_bytes() == 0


@pytest.mark.second
def test_pinned_memory_is_handed_out_again_at_once(cupy):
    import cupyx

    first = cupyx.empty_pinned((3, 100), "f4")
    start = first.ctypes.data
    del first
    assert cupyx.empty_pinned((260,), "f4").ctypes.data == start


# ---- waits ----------------------------------------------------------------------------------


@pytest.mark.second
def test_numpy_gets_no_array_that_nobody_asked_for(cupy, streams):
    with pytest.raises(TypeError, match="Implicit conversion"):
        np.asarray(cupy.zeros(2))
    with pytest.raises(TypeError, match="Unsupported type"):
        cupy.zeros(2) + np.ones(2)
    streams.reset()


@pytest.mark.second
@pytest.mark.parametrize(
    ("hides", "expected"),
    [
        (lambda v: float(v[1]), 2.0),
        (lambda v: bool(v[0]), True),
        (lambda v: int(v[1]), 2),
        (lambda v: float(np.sum(v).get()), 3.0),
        (lambda v: (v + 1).get().tolist(), [2, 3]),
        (lambda v: [float(x) for x in v], [1, 2]),
        (lambda v: (v[0] < 2).get().item(), True),
    ],
)
def test_hidden_waits_and_kernels_are_counted(streams, hides, expected):
    assert hides(tg.Tensor([1.0, 2.0], device="cuda").value) == expected
    assert streams.hidden
    streams.reset()


@pytest.mark.second
def test_waits_are_counted(cupy, streams):
    x = tg.Tensor([1.0, 2.0], device="cuda")
    (x * x).sum().item()
    x.device.synchronize()
    cupy.cuda.get_current_stream().synchronize()
    assert streams.waits == ["get", "device.synchronize", "stream.synchronize"]
    assert not streams.hidden


# ---- streams and events -----------------------------------------------------------------------


@pytest.mark.second
def test_a_dropped_stream_finishes_its_work(cupy):
    stream, x = cupy.cuda.Stream(non_blocking=True), cupy.zeros(2)
    cupy.cuda.get_current_stream().synchronize()
    with stream:
        x.fill(7)
    del stream
    assert x.get().tolist() == [0, 0]  # nothing says that it has come to pass
    cupy.cuda.Device().synchronize()
    assert x.get().tolist() == [7, 7]


@pytest.mark.second
def test_time_passes_between_events(cupy):
    first, last = cupy.cuda.Event(), cupy.cuda.Event()
    first.record()
    cupy.zeros(100_000)
    last.record()
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match="NotReady"):
        cupy.cuda.get_elapsed_time(first, last)
    last.synchronize()
    assert cupy.cuda.get_elapsed_time(first, last) > 0
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match="InvalidResourceHandle"):
        cupy.cuda.get_elapsed_time(first, cupy.cuda.Event(disable_timing=True))


@pytest.mark.second
def test_a_capture_keeps_to_itself(cupy):
    stream, error = cupy.cuda.Stream(non_blocking=True), cupy.cuda.runtime.CUDARuntimeError
    with stream:
        stream.begin_capture()
        with pytest.raises(error, match="Isolation"):
            stream.wait_event(cupy.cuda.Stream.null.record())
        with pytest.raises(error, match="StreamCaptureUnsupported"):
            cupy.zeros(2).get()
        with pytest.raises(error, match="Invalidated"):  # nothing is left of it
            stream.end_capture()
        with pytest.raises(error, match="IllegalState"):
            stream.end_capture()


@pytest.mark.second
def test_a_failure_spoils_all_that_follows(cupy, streams):
    error = cupy.cuda.runtime.CUDARuntimeError
    x = cupy.zeros(2)
    cupy.cuda.get_current_stream().add(lambda: 1 // 0)
    x.fill(3)  # it is queued: nobody knows yet
    for _ in range(2):
        with pytest.raises(error, match="IllegalAddress: after ZeroDivisionError"):
            x.get()
    with pytest.raises(error, match="IllegalAddress"):
        cupy.empty(1 << 20)
    with cupy.cuda.Stream(non_blocking=True), pytest.raises(error, match="IllegalAddress"):
        x.fill(1)
    streams.reset()
    assert cupy.zeros(2).get().tolist() == [0, 0]
