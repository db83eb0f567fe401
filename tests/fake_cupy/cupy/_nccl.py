"""cupy.cuda.nccl between the processes of a launch: MPI carries the bytes.

    send       what was queued before it is run, and the bytes go out at once
    receive    work in the queue of the stream: the bytes are there at the last moment

So a rank that is ahead waits for nobody until it needs something, as on a GPU; what looks at an
array before its stream has come to it sees what was there before.  Where NCCL would wait for ever,
read what is no device memory, or hand out numbers that are wrong, there is an error.
"""

import os
from collections import Counter

from cupy import _device
from cupy._memory import memory_at
from cupy._stream import get_current_stream, refuse_while_capturing

available = os.environ.get("TINYGRAPH_REHEARSED_NCCL", "1") == "1"
NCCL_INT8, NCCL_UINT8 = 0, 1
_BYTES = 128  # of an id

calls = Counter()  # by name
_group = None  # what was asked for since groupStart


class NcclError(RuntimeError):
    """As of cupy.cuda.nccl."""

    def __init__(self, status, what):
        super().__init__(f"{status}: {what}")


def get_version():
    return 22707


def get_unique_id():
    return os.urandom(_BYTES)


def groupStart():
    global _group
    assert _group is None, "groups within groups are not rehearsed"
    _group = []


def groupEnd():
    global _group
    asked, _group = _group, None
    _run(asked)


class NcclCommunicator:
    """One GPU of several; all of them are made at the same time."""

    def __init__(self, ndev, commId, rank):
        from mpi4py import MPI  # only where there is a launch

        if not isinstance(commId, bytes) or len(commId) != _BYTES:
            raise ValueError(f"commId length {len(commId)} != {_BYTES}.")
        self._comm, self._requests = MPI.COMM_WORLD.Dup(), []
        told = self._comm.allgather((commId, rank, _device.current()))
        ids, ranks, gpus = zip(*told, strict=True)
        assert len({*ids}) == 1 and [*ranks] == [*range(ndev)], told
        if len({*gpus}) < ndev:
            raise NcclError("NCCL_ERROR_INVALID_USAGE", "Duplicate GPU detected")
        self._rank, self._size, self._gpu = rank, ndev, gpus[rank]

    def destroy(self):
        self._complete()
        self._comm.Free()

    def check_async_error(self):
        pass

    def send(self, sendbuf, count, datatype, peer, stream):
        self._ask("send", datatype, stream, [(peer, sendbuf, count)], [])

    def recv(self, recvbuf, count, datatype, peer, stream):
        self._ask("recv", datatype, stream, [], [(peer, recvbuf, count)])

    def allGather(self, sendbuf, recvbuf, count, datatype, stream):
        sent = [(peer, sendbuf, count) for peer in range(self._size)]
        received = [(peer, recvbuf + peer * count, count) for peer in range(self._size)]
        self._ask("allGather", datatype, stream, sent, received)

    def broadcast(self, sendbuff, recvbuff, count, datatype, root, stream):
        own = root == self._rank
        sent = [(peer, sendbuff, count) for peer in range(self._size) if own]
        self._ask("broadcast", datatype, stream, sent, [(root, recvbuff, count)])

    def _ask(self, name, datatype, stream, sent, received):
        refuse_while_capturing(f"nccl.{name}")
        assert datatype == NCCL_UINT8, "only bytes are rehearsed"
        assert stream == get_current_stream().ptr
        assert _device.current() == self._gpu, "a communicator belongs to its GPU"
        calls[name] += 1
        asked = [(self, sent, received)]
        if _group is None:
            _run(asked)
        else:
            _group.extend(asked)

    def _send(self, peer, address, count):
        self._requests = [request for request in self._requests if not request.Test()]
        self._requests.append(self._comm.Isend(_at(address, count).copy(), peer))

    def _receive(self, peer, target):
        from mpi4py import MPI

        status = MPI.Status()
        self._comm.Recv(target, peer, status=status)
        arrived = status.Get_count()
        assert arrived == target.size, f"{arrived} bytes from rank {peer}, not {target.size}"

    def _complete(self):
        while self._requests:
            self._requests.pop().Wait()


def _run(asked):
    stream = get_current_stream()
    if any(sent for _, sent, _ in asked):
        stream.run()  # what is sent has been computed
    for communicator, sent, _ in asked:
        for message in sent:
            communicator._send(*message)
    for communicator, _, received in asked:
        for peer, address, count in received:
            target = _at(address, count)
            stream.add(lambda c=communicator, peer=peer, to=target: c._receive(peer, to))


def _at(address, count):
    """Bytes of device memory, which stays as long as somebody has these."""
    memory = memory_at(address, count)
    assert memory is not None, f"{count} bytes at {address:#x} are not on the GPU"
    start = address - memory.ctypes.data
    return memory[start : start + count]
