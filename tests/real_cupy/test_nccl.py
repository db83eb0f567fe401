"""What nccl.py calls, by the real CuPy and the real NCCL: only that a call can be made so.

NCCL refuses each call, for there is no GPU and no communicator.  An argument too many, or of
another type, is refused before, by CuPy, and with another error.
"""

import pytest

from tinygraph.distributed.nccl import Nccl
from tinygraph.engine.device import get_device


class OfNobody(Nccl):
    """Two ranks, of which this is the first; there is no communicator."""

    rank, size = 0, 2

    def __init__(self):
        self._device = get_device("cuda")
        self._nccl = nccl = self._device.nccl()
        self._gpus = nccl.NcclCommunicator.__new__(nccl.NcclCommunicator)


@pytest.fixture
def world(rehearsed_cuda):
    return OfNobody()


def test_an_id_goes_to_the_communicator(world):
    made = world._nccl.get_unique_id()
    with pytest.raises(ValueError, match="commId length"):  # it is looked at, then handed on
        world._nccl.NcclCommunicator(2, made[:-1], 1)
    assert len(made) == 128 and world._nccl.get_version() >= 22707


@pytest.mark.parametrize(
    "call",
    [
        lambda world, x: world._all_gather(x),
        lambda world, x: world._broadcast(x, 1),
        lambda world, x: world._receive(x, 1, 0),
        lambda world, x: world._gpus.send(*world._place(x), 1, world._stream()),
    ],
)
def test_calls_come_to_nccl(world, call):
    x = world._device.zeros((2, 3), "float32")
    with pytest.raises(world._nccl.NcclError, match="INVALID_ARGUMENT"):
        call(world, x)
