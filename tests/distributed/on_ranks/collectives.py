"""Each collective, against what plain numpy makes of the arrays of all ranks."""

import sys

import numpy as np

import tinygraph as tg
from tinygraph.base.errors import DistributedError

distributed = tg.distributed
world = distributed.init()
RANK, SIZE = distributed.rank(), distributed.world_size()
assert isinstance(world, distributed.World) and world.name == "MPI"
assert distributed.init() is world and distributed.local_rank() == RANK and world.local_size == SIZE

DTYPES = ["?", "i1", "u2", "i4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", ">f4"]
SHAPES = [(), (1,), (7,), (3, 5), (0,), (4, 0, 2), (2, 30_011)]


def array(rank, shape, dtype, seed=0):
    """What a rank has; every rank can tell what any other one has."""
    numbers = np.random.default_rng([rank, seed]).standard_normal(shape) * 10
    return np.asarray(numbers).astype(dtype)


def layouts(x):
    """The same numbers: as they are, with strides, transposed, and read-only."""
    yield x
    if x.ndim:
        yield np.repeat(x, 2, axis=0)[::2]
        yield x[::-1].copy()[::-1]
        yield np.asfortranarray(x)
    fixed = x.copy()
    fixed.flags.writeable = False
    yield fixed


def same(got, expected):
    """Dtype, shape and bits; the result is this rank's own, and can be written to."""
    assert isinstance(got, np.ndarray), type(got)
    assert got.dtype == expected.dtype and got.shape == expected.shape, (got, expected)
    assert got.tobytes() == np.ascontiguousarray(expected).tobytes(), (got, expected)
    assert got.flags.writeable


def tree(parts, add):
    """The sum as it is written in words: neighbours first, then pairs of pairs, ..."""
    while len(parts) > 1:
        pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
        parts = [add(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return parts[0]


def reduced(parts, op):
    add = {"sum": np.add, "mean": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}
    with np.errstate(all="ignore"):
        total = np.asarray(tree(parts, add[op]))
        return total / total.dtype.type(SIZE) if op == "mean" else total


def check(dtype, shape):
    everywhere = [array(r, shape, dtype) for r in range(SIZE)]
    mine = everywhere[RANK]
    for x in layouts(mine):
        before = x.copy()
        same(distributed.all_gather(x), np.stack(everywhere).astype(dtype))
        for root in range(SIZE):
            same(distributed.broadcast(x, root), everywhere[root])
        for op in ("sum", "mean", "prod", "min", "max"):
            if op != "mean" or mine.dtype.kind in "fc":
                same(distributed.all_reduce(x, op), np.array(reduced(everywhere, op), dtype))
        np.testing.assert_array_equal(x, before)

    parts = [array(r, (SIZE, *shape), dtype, 1) for r in range(SIZE)]
    for x in layouts(parts[RANK]):
        expected = np.stack([parts[r][RANK] for r in range(SIZE)]).astype(dtype)
        same(distributed.all_to_all(x), expected)
        same(distributed.reduce_scatter(x), np.array(reduced([*expected], "sum"), dtype))
        handle = world.start_all_to_all(x)
        handle.test()
        same(handle.wait(), expected)
        same(handle.wait(), expected)


def check_rows(dtype):
    """Ranks with different numbers of rows, one of them without any."""
    for rows in ([*range(SIZE)], [3] * SIZE, [0] * SIZE, [*range(5, 5 + SIZE)][::-1]):
        everywhere = [array(r, (n, 2, 3), dtype, 2) for r, n in enumerate(rows)]
        expected = np.concatenate(everywhere).astype(dtype)
        for x in layouts(everywhere[RANK]):
            same(distributed.all_gather_rows(x), expected)
            same(world.start_all_gather_rows(x).wait(), expected)
            for out in (np.empty_like(expected), np.empty(expected.shape[::-1], dtype).T):
                assert distributed.all_gather_rows(x, out) is out
                np.testing.assert_array_equal(out, expected)


def check_ragged():
    """Parts of all shapes and dtypes, by exchange and by send and recv."""

    def part(source, to):
        shape = [(), (0,), (source + 1, to), (to + 2,) * 3][(source + 2 * to) % 4]
        return array(source, shape, DTYPES[(source * SIZE + to) % len(DTYPES)], 3 + to)

    for got, source in zip(
        distributed.exchange([part(RANK, r) for r in range(SIZE)]), range(SIZE), strict=True
    ):
        same(got, part(source, RANK))
    for offset in range(1, SIZE):
        to, source = (RANK + offset) % SIZE, (RANK - offset) % SIZE
        if to > RANK:  # somebody has to listen
            distributed.send(part(RANK, to), to, tag=offset)
            same(distributed.recv(source, tag=offset), part(source, RANK))
        else:
            same(distributed.recv(source, tag=offset), part(source, RANK))
            distributed.send(part(RANK, to), to, tag=offset)


def check_objects():
    thing = {"rank": RANK, "array": np.arange(RANK), "words": ["ä"] * RANK}
    for root in range(SIZE):
        got = distributed.broadcast_object(thing, root)
        assert got["rank"] == root and len(got["array"]) == root and got["words"] == ["ä"] * root
    assert [t["rank"] for t in distributed.all_gather_object(thing)] == [*range(SIZE)]
    distributed.barrier()


def check_disagreement():
    """Whatever the ranks do differently, all of them say the same, and go on."""
    last = RANK == SIZE - 1
    x = np.ones((2, 3 + last), np.float32)
    out = np.empty((0, 3), np.float32)

    for name, call in {
        "all_reduce": lambda: distributed.all_reduce(x),
        "all_gather": lambda: distributed.all_gather(x),
        "all_gather_rows": lambda: distributed.all_gather_rows(x),
        "broadcast": lambda: distributed.broadcast(x),
        "dtype": lambda: distributed.all_reduce(np.ones(3, "f8" if last else "f4")),
        "op": lambda: distributed.all_reduce(np.ones(3), "max" if last else "sum"),
        "root": lambda: distributed.broadcast(np.ones(3), int(last)),
        "call": lambda: distributed.barrier() if last else distributed.all_gather(x),
        "objects": lambda: distributed.all_gather_object(1) if last else distributed.barrier(),
    }.items():
        try:
            call()
        except DistributedError as error:
            said = world.all_gather_object(str(error))
            texts = {text.partition(":")[2] for text in said}
            assert len(texts) == 1 and f"rank {SIZE - 1}: " in said[0], said
            assert "Way out: every rank" in said[0]
        else:
            raise AssertionError(f"{name}: no error")
    try:
        distributed.all_gather_rows(np.ones((RANK, 3), np.float32), out)
    except tg.errors.ShapeError as error:
        assert f"float32[{sum(range(SIZE))}, 3]" in str(error)
    else:
        raise AssertionError("out")


def check_nan_and_inf():
    x = np.array([np.nan if RANK == 0 else 1, np.inf if RANK else -np.inf, -0.0], np.float32)
    np.testing.assert_array_equal(distributed.all_reduce(x)[:2], np.float32([np.nan, np.nan]))
    for op in ("min", "max"):
        assert np.isnan(distributed.all_reduce(x, op)[0])
    assert np.signbit(distributed.all_reduce(x)[2])


if __name__ == "__main__":
    for dtype in DTYPES if "all" in sys.argv else ["f4"]:
        for shape in SHAPES:
            check(dtype, shape)
        check_rows(dtype)
    check_ragged()
    check_objects()
    check_disagreement()
    check_nan_and_inf()
    print("fine\n", end="")
