"""The collectives on arrays of GPUs, one for each rank; the expected numbers are made by numpy."""

import sys

import cupy
import numpy as np

import tinygraph as tg
from tests.distributed.on_ranks.collectives import RANK, SHAPES, SIZE, array, reduced
from tests.distributed.on_ranks.collectives import same as same_on_host
from tinygraph.base.errors import DeviceError, DistributedError, DtypeError, GraphError

distributed = tg.distributed
assert distributed.world().name == "MPI"
WORLD = distributed.init("nccl")
assert distributed.init("nccl") is distributed.init() is WORLD and WORLD.name == "NCCL"
assert cupy.cuda.Device().id == tg.device("cuda").index == distributed.local_rank() == RANK
DTYPES = ["?", "i1", "u2", "i4", "i8", "f4", "f8"]


def there(x):
    return tg.device("cuda").from_numpy(np.ascontiguousarray(x).reshape(np.shape(x)))


def same(got, expected):
    """On the GPU, and with these bits."""
    assert isinstance(got, cupy.ndarray), type(got)
    same_on_host(got.get(), expected)


def layouts(x):
    """The same numbers: as they are, and with strides."""
    yield there(x)
    if x.ndim:
        yield there(np.repeat(x, 2, axis=0))[::2]


def check(dtype, shape):
    everywhere = [array(r, shape, dtype) for r in range(SIZE)]
    parts = [array(r, (SIZE, *shape), dtype, 1) for r in range(SIZE)]
    expected = np.stack([parts[r][RANK] for r in range(SIZE)]).astype(dtype)
    for x in layouts(everywhere[RANK]):
        before = x.get()
        same(distributed.all_gather(x), np.stack(everywhere).astype(dtype))
        for root in range(SIZE):
            same(distributed.broadcast(x, root), everywhere[root])
        for op in ("sum", "mean", "prod", "min", "max"):
            if op != "mean" or dtype[0] == "f":
                same(distributed.all_reduce(x, op), np.array(reduced(everywhere, op), dtype))
        np.testing.assert_array_equal(x.get(), before)
    for x in layouts(parts[RANK]):
        same(distributed.all_to_all(x), expected)
        same(WORLD.start_all_to_all(x).wait(), expected)
        same(distributed.reduce_scatter(x), np.array(reduced([*expected], "sum"), dtype))


def check_rows(dtype):
    for rows in ([*range(SIZE)], [3] * SIZE, [0] * SIZE):
        everywhere = [array(r, (n, 2, 3), dtype, 2) for r, n in enumerate(rows)]
        expected = np.concatenate(everywhere).astype(dtype)
        x = there(everywhere[RANK])
        same(distributed.all_gather_rows(x), expected)
        same(WORLD.start_all_gather_rows(x).wait(), expected)
        out = there(np.zeros_like(expected))
        assert distributed.all_gather_rows(x, out) is out
        same(out, expected)


def check_ragged():
    """Some parts lie on GPUs, others on the host; each arrives as what it was."""

    def part(source, to):
        return array(source, [(), (0,), (source + 1, to)][(source + to) % 3], "f4", 3 + to)

    def placed(source, to):
        return there(part(source, to)) if (source + 2 * to) % 3 else part(source, to)

    def right(got, source):
        (same if (source + 2 * RANK) % 3 else same_on_host)(got, part(source, RANK))

    got = distributed.exchange([placed(RANK, r) for r in range(SIZE)])
    for source in range(SIZE):
        right(got[source], source)
    for offset in range(1, SIZE):
        to, source = (RANK + offset) % SIZE, (RANK - offset) % SIZE
        if to > RANK:  # somebody has to listen
            distributed.send(placed(RANK, to), to, tag=offset)
            right(distributed.recv(source, tag=offset), source)
        else:
            right(distributed.recv(source, tag=offset), source)
            distributed.send(placed(RANK, to), to, tag=offset)


def refused(error, words, call):
    try:
        call()
    except error as found:
        assert words in str(found), found
    else:
        raise AssertionError(words)


def check_errors():
    x, last = np.ones(4, np.float32), RANK == SIZE - 1
    mixed = x if last else there(x)
    words = f"rank {SIZE - 1}: all_reduce of float32[4], sum"
    refused(DistributedError, words, lambda: distributed.all_reduce(mixed))
    refused(DistributedError, "rank 0: all_gather of GPU", lambda: distributed.all_gather(mixed))
    refused(DeviceError, "got the host", lambda: distributed.all_gather_rows(there(x), x))
    refused(DeviceError, "got a GPU", lambda: distributed.all_gather_rows(x, there(x)))
    refused(DtypeError, "complex64", lambda: distributed.all_reduce(there(x.astype("c8"))))
    refused(DtypeError, "float16", lambda: distributed.all_reduce(there(x.astype("f2"))))
    refused(DistributedError, "NCCL, which carries", lambda: distributed.init("mpi"))
    step = tg.cuda.capture(distributed.functions.all_reduce)
    for _ in range(2):
        same(step(x).value, SIZE * x)
    refused(GraphError, "one that speaks to other ranks", lambda: step(x))


if __name__ == "__main__":
    for dtype in DTYPES if "all" in sys.argv else ["f4"]:
        for shape in SHAPES if "all" in sys.argv else [(3, 5), (0,)]:
            check(dtype, shape)
        check_rows(dtype)
    check_ragged()
    check_errors()
    same_on_host(distributed.all_reduce(np.ones(3)), np.full(3, float(SIZE)))  # by MPI
    distributed.finalize()
    assert distributed.world_size() == 1
    print("fine\n", end="")
