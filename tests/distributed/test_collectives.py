"""The collectives: on several ranks, and in a world of one."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tinygraph as tg
from tests.distributed.launch import environment, needs_mpi, succeed
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError
from tinygraph.distributed.joined import LAUNCHERS

distributed = tg.distributed


@needs_mpi
@pytest.mark.parametrize(
    ("ranks", "what"),
    [
        (3, "some"),
        *[pytest.param(n, "all", marks=pytest.mark.second) for n in (2, 3, 4, 5)],
    ],
)
def test_collectives_on_ranks(ranks, what):
    assert succeed("collectives", ranks, what).split() == ["fine"] * ranks


@needs_mpi
def test_one_rank_of_a_launch_is_a_world_of_one():
    assert "one process" in succeed("import tinygraph as tg; print(tg.distributed.init())", 1)


# ---- one process ------------------------------------------------------------------------------


def python(source, **more):
    command = [sys.executable, "-c", source]
    return subprocess.run(command, capture_output=True, text=True, env=environment(**more))


def test_alone_mpi4py_is_not_imported():
    """Slurm's rank is no launcher's: it is there in a job of one process, too."""
    source = """
import sys
import tinygraph as tg
assert not tg.distributed.is_initialized()
from tinygraph import distributed
assert (distributed.rank(), distributed.world_size(), distributed.local_rank()) == (0, 1, 0)
distributed.barrier()
assert distributed.is_initialized() and distributed.init() is distributed.world()
assert "mpi4py" not in sys.modules
distributed.finalize()
distributed.abort(7)
"""
    assert python(source, SLURM_PROCID="1", SLURM_NTASKS="2").returncode == 7


@pytest.mark.parametrize("variable", LAUNCHERS)
def test_a_launcher_without_mpi4py_is_an_error(variable):
    """Else each process would train alone, all into one place."""
    source = (
        "import sys; sys.modules['mpi4py'] = None\nimport tinygraph as tg; tg.distributed.rank()"
    )
    ended = python(source, **{variable: "0"})
    assert ended.returncode == 1
    assert f"({variable} is set)" in ended.stderr and "pip install -e '.[mpi]'" in ended.stderr


@needs_mpi
def test_an_mpi4py_of_another_mpi_is_an_error():
    """Under a foreign launcher each process of such an mpi4py finds itself alone."""
    source = "import tinygraph as tg; tg.distributed.init()"
    ended = python(source, OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="4")
    assert ended.returncode == 1 and "the 4 processes that the launcher" in ended.stderr


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    for name in [*os.environ]:
        if name.startswith(("PMI_", "PMIX_", "OMPI_")):
            monkeypatch.delenv(name)
    monkeypatch.setattr(sys.modules["tinygraph.distributed.joined"], "_world", None)


def test_a_world_of_one_is_the_identity():
    x = np.arange(6.0).reshape(1, 6)
    world = distributed.world()
    for made in (
        distributed.all_reduce(x),
        distributed.all_reduce(x, "mean"),
        distributed.all_gather_rows(x),
        distributed.all_to_all(x),
        distributed.broadcast(x),
        *distributed.exchange([x]),
        world.start_all_to_all(x).wait(),
        world.start_all_gather_rows(x).wait(),
    ):
        assert made is x
    assert np.shares_memory(distributed.all_gather(x), x) and distributed.all_gather(x).ndim == 3
    np.testing.assert_array_equal(distributed.reduce_scatter(x), x[0])
    out = np.empty_like(x)
    assert distributed.all_gather_rows(x, out) is out
    np.testing.assert_array_equal(out, x)
    assert distributed.broadcast_object("a") == "a" and distributed.all_gather_object("a") == ["a"]
    assert world.start_all_to_all(x).test()
    assert repr(world) == "<rank 0 of 1: one process>"


X = np.ones((1, 2), np.float32)
BAD = {
    "Tensor": (lambda: distributed.all_reduce(tg.ones(2)), ArgumentError, "functions.all_reduce"),
    "text": (lambda: distributed.all_gather(np.array(["a"])), DtypeError, "numbers or bools"),
    "object": (lambda: distributed.broadcast(np.array([None])), DtypeError, "broadcast_object"),
    "op": (lambda: distributed.all_reduce(X, "median"), ArgumentError, "'median'"),
    "integers": (lambda: distributed.all_reduce([1, 2], "mean"), DtypeError, "floats, for a mean"),
    "no rows": (lambda: distributed.all_gather_rows(1.0), ShapeError, "at least one axis"),
    "parts": (lambda: distributed.all_to_all(np.ones((2, 3))), ShapeError, r"1 parts on axis 0"),
    "scalar": (lambda: distributed.reduce_scatter(3.0), ShapeError, r"1 parts on axis 0"),
    "list": (lambda: distributed.exchange([X, X]), ShapeError, "1 arrays, one for a rank"),
    "root": (lambda: distributed.broadcast(X, 1), ArgumentError, "a rank from 0 to 0, got 1"),
    "negative": (lambda: distributed.broadcast(X, -1), ArgumentError, "a rank from 0"),
    "float root": (lambda: distributed.broadcast_object(X, 0.0), ArgumentError, "a rank from 0"),
    "bool root": (lambda: distributed.broadcast(X, False), ArgumentError, "a rank from 0"),
    "send": (lambda: distributed.send(X, 0), ArgumentError, "another rank, got 0"),
    "recv": (lambda: distributed.recv(0), ArgumentError, "another rank, got 0"),
    "World.send": (lambda: distributed.World().send(X, 1), ArgumentError, "world of one process"),
    "World.recv": (lambda: distributed.World().recv(1), ArgumentError, "world of one process"),
    "backend": (lambda: distributed.init("gloo"), ArgumentError, "'mpi' or 'nccl', got 'gloo'"),
    "timeout": (lambda: distributed.init(timeout=0), ArgumentError, "seconds above 0, got 0"),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_input(bad):
    call, error, words = BAD[bad]
    with pytest.raises(error, match=words):
        call()
