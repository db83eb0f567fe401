"""Nccl: the ranks of an MPI launch with a GPU each.  What lies on a GPU travels by NCCL.

    heads, objects, numpy's arrays, what the ranks compare    MPI: see mpi.py
    CuPy's arrays                                             NCCL, queued in the current stream

Before arrays move, the ranks compare on the host what each is about to do, as for arrays of the
host: so NCCL, which knows of no error but waiting for ever, is begun on all ranks or on none.  That
does not wait for the GPU, and neither does the rest: what comes back is there for what is queued
behind it.

Arrays travel as bytes.  They are added up by tinygraph's kernels, in the order of mpi.py: each rank
gets a slice of all arrays, adds, and gives the sum to all.  `ncclAllReduce` moves as many bytes,
but adds in an order that depends on the number of GPUs and how they are connected.

CuPy's `NcclCommunicator` is used, not its `cupyx.distributed`: that one opens a TCP server, without
a word, where it does not find mpi4py, imports SciPy's sparse matrices, and has no bools and no
integers of 16 bits.

Source: NVIDIA, "NCCL user guide", chapters "Point-to-point communication" and "Group calls"; CuPy's
documentation of `cupy.cuda.nccl`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinygraph.base import DeviceError
from tinygraph.cuda.devices import CudaDevice, cupy
from tinygraph.cuda.launch import is_cupy
from tinygraph.distributed.mpi import Mpi, copied, header_of, is_on_gpu, shape_and_dtype
from tinygraph.distributed.tree_sum import share
from tinygraph.distributed.world import Handle
from tinygraph.engine import Array, eager_memory, get_device, here
from tinygraph.ops.elementwise.arithmetic import Add, Arithmetic, Div, Maximum, Minimum, Mul

_OPS: dict[Any, Arithmetic] = {op.function: op for op in (Add(), Mul(), Maximum(), Minimum())}
_NOTHING = np.empty(0, np.uint8)


class Nccl(Mpi):
    """What a launch becomes with `init("nccl")`: each rank gets the GPU of its local rank.

    Raises
    ------
    DeviceError
        On all ranks: one of them has no GPU, no NCCL, the GPU of another rank, or already works on
        another one than its own.
    """

    name = "NCCL"

    def __init__(self, ranks: Mpi) -> None:
        self.__dict__ = ranks.__dict__  # one and the same, for whoever knows it as that
        with self.watched("init"):
            self._device = self._own_gpu()
            self._nccl = self._device.nccl()
            made = self.comm.bcast(self._nccl.get_unique_id() if self.rank == 0 else None)
            self._gpus = self._nccl.NcclCommunicator(self.size, made, self.rank)

    def _own_gpu(self) -> CudaDevice:
        failure = gpu = None
        try:
            device = _use_gpu(self.local_rank)
            device.nccl()
            gpu = self._mpi.Get_processor_name(), device.cupy.cuda.Device().pci_bus_id
        except DeviceError as error:
            failure = error
        every = self.comm.allgather((gpu, failure and str(failure)))
        for rank, (theirs, why) in enumerate(every):
            if why is not None:
                raise failure or DeviceError(f"rank {rank}: {why}")
            first = next(at for at, (other, _) in enumerate(every) if other == theirs)
            if first != rank:
                expected, got = "a GPU for each rank", f"{theirs[1]} for ranks {first} and {rank}"
                way_out = "at most as many ranks on a machine as it has GPUs"
                raise DeviceError("init", "GPUs", expected, got, way_out)
        return device

    def _kind(self, x: Array) -> str:
        if not is_cupy(x):
            return super()._kind(x)
        here.top.wait("speaks to other ranks")  # their part is nothing that a graph could repeat
        return f"GPU {x.dtype}"

    # ---- bytes --------------------------------------------------------------------------------

    def _group(self, parts: Sequence[Any], out: Sequence[Any]) -> None:
        """Array r goes to rank r, and what it sends arrives in array r; all at the same time."""
        self._nccl.groupStart()
        for rank, (sent, received) in enumerate(zip(parts, out, strict=True)):
            self.bytes_sent += sent.nbytes if rank != self.rank else 0
            if sent.nbytes:
                self._gpus.send(*self._place(sent), rank, self._stream())
            if received.nbytes:
                self._gpus.recv(*self._place(received), rank, self._stream())
        self._nccl.groupEnd()

    def _place(self, x: Any) -> tuple[int, int, int]:
        """Address, count and kind, as NCCL takes an array in row-major order."""
        return x.data.ptr, x.nbytes, self._nccl.NCCL_UINT8

    def _stream(self) -> int:
        stream: int = self._device.cupy.cuda.get_current_stream().ptr
        return stream

    # ---- arrays of equal shapes ---------------------------------------------------------------

    def _all_to_all(self, parts: Any) -> Array:
        if not is_cupy(parts):
            return super()._all_to_all(parts)
        parts = self._device.contiguous(parts)
        out = self._device.empty(parts.shape, parts.dtype)
        self._group([parts[r] for r in range(self.size)], [out[r] for r in range(self.size)])
        return out

    def _all_gather(self, x: Any) -> Array:
        if not is_cupy(x):
            return super()._all_gather(x)
        x = self._device.contiguous(x)
        out: Any = self._device.empty((self.size, *x.shape), x.dtype)
        if x.nbytes:
            self.bytes_sent += (self.size - 1) * x.nbytes
            address, *count_and_kind = self._place(x)
            self._gpus.allGather(address, out.data.ptr, *count_and_kind, self._stream())
        return out

    def _broadcast(self, x: Any, root: int) -> Array:
        if not is_cupy(x):
            return super()._broadcast(x, root)
        out: Any = self._device.copy(x)
        if x.nbytes:
            self.bytes_sent += (self.size - 1) * x.nbytes if self.rank == root else 0
            address, *count_and_kind = self._place(out)
            self._gpus.broadcast(address, address, *count_and_kind, root, self._stream())
        return out

    def _reduced(self, x: Any, ufunc: np.ufunc, out: Any = None) -> Array:
        if not is_cupy(x):
            return super()._reduced(x, ufunc, out)
        flat = self._device.contiguous(x).reshape(-1)
        cuts = [slice(*share(flat.size, rank, self.size)) for rank in range(self.size)]
        mine = flat[cuts[self.rank]].size
        slices = self._device.empty((self.size, mine), x.dtype)
        self._group([flat[cut] for cut in cuts], [slices[r] for r in range(self.size)])
        added = self._combined(slices, ufunc)
        if mine * self.size == flat.size:
            total = self._all_gather(added).reshape(x.shape)
        else:
            whole = self._device.empty(flat.shape, x.dtype)
            self._group([added] * self.size, [whole[cut] for cut in cuts])
            total = whole.reshape(x.shape)
        return copied(total, out)

    def _combined(self, parts: Any, ufunc: np.ufunc) -> Array:
        if not is_cupy(parts):
            return super()._combined(parts, ufunc)
        terms = [parts[rank] for rank in range(self.size)]
        while len(terms) > 1:  # neighbours, and then pairs of pairs
            pairs = [terms[at : at + 2] for at in range(0, len(terms), 2)]
            terms = [self._launch(_OPS[ufunc], *pair) if pair[1:] else pair[0] for pair in pairs]
        return terms[0]

    def _launch(self, op: Arithmetic, x: Array, y: Array) -> Array:
        return op.launch(eager_memory((False, False), self._device), x, y)

    def _divided(self, x: Array, op: str) -> Array:
        if not is_cupy(x) or op != "mean":
            return super()._divided(x, op)
        size = self._device.full((1,) * x.ndim, x.dtype, self.size)
        return self._launch(Div(), x, size)

    # ---- arrays of different shapes -----------------------------------------------------------

    def all_gather_rows(self, x: Any, out: Any = None) -> Array:
        if out is not None and is_cupy(x) != is_cupy(out):
            expected, got = ("a GPU", "the host") if is_cupy(x) else ("the host", "a GPU")
            raise DeviceError("all_gather_rows", "out", f"an array of {expected}, as x", got)
        if not is_cupy(x):
            return super().all_gather_rows(x, out)
        with self.watched("all_gather_rows"):
            rows = self._numbers_of_rows(x, out)
            into: Any = self._device.empty((sum(rows), *x.shape[1:]), x.dtype)
            ends = [sum(rows[: rank + 1]) for rank in range(self.size)]
            places = [into[end - n : end] for end, n in zip(ends, rows, strict=True)]
            self._group([self._device.contiguous(x)] * self.size, places)
        return copied(into, out)

    def _swap(self, parts: Sequence[Any], out: Sequence[Any]) -> None:
        """Some may lie on a GPU, others on the host."""
        super()._swap(*([_NOTHING if is_cupy(x) else x for x in some] for some in (parts, out)))
        there = [self._device.contiguous(x) if is_cupy(x) else _NOTHING for x in parts]
        self._group(there, [x if is_cupy(x) else _NOTHING for x in out])

    def send(self, x: Any, to: int, tag: int = 0) -> None:
        if not is_cupy(x):
            return super().send(x, to, tag)
        with self.watched(f"send to rank {to}", to):
            self._kind(x)
            x = self._device.contiguous(x)
            self.bytes_sent += x.nbytes
            self.comm.Ssend(header_of(x), to, tag)  # waits until it is read: NCCL has no tags
            if x.nbytes:
                self._gpus.send(*self._place(x), to, self._stream())

    def _receive(self, out: Any, source: int, tag: int) -> None:
        if not is_cupy(out):
            super()._receive(out, source, tag)
        elif out.nbytes:
            self._gpus.recv(*self._place(out), source, self._stream())

    def _announced(self, header: Array) -> Array:
        if not is_on_gpu(header):
            return super()._announced(header)
        return self._device.empty(*shape_and_dtype(header))

    # ---- begun now, waited for later: by what is queued behind it -----------------------------

    def start_all_to_all(self, parts: Array) -> Handle:
        if not is_cupy(parts):
            return super().start_all_to_all(parts)
        return Handle(self._all_to_all(parts))

    def start_all_gather_rows(self, x: Array) -> Handle:
        if not is_cupy(x):
            return super().start_all_gather_rows(x)
        return Handle(self.all_gather_rows(x))

    def finalize(self) -> None:
        self._device.synchronize()
        self._gpus.destroy()
        super().finalize()


def _use_gpu(number: int) -> CudaDevice:
    """Let this thread work on one of the GPUs of the machine, and make it device "cuda".

    Where the process sees a single one, which a launcher has chosen, it is that one.

    Raises
    ------
    DeviceError
        Without CuPy or such a GPU; or device "cuda" is another one already.
    """
    cuda = cupy().cuda
    count = cuda.runtime.getDeviceCount()
    if count > 1:
        if number >= count:
            way_out = f"at most {count} ranks on this machine, one for each GPU"
            raise DeviceError("device", "GPU", f"one from 0 to {count - 1}", number, way_out)
        cuda.Device(number).use()
    found: Any = get_device("cuda")
    if found.index != cuda.Device().id:
        raise DeviceError(
            "device",
            "GPU",
            f"device 'cuda' to be GPU {cuda.Device().id}",
            f"GPU {found.index}, which it became when something asked for it",
            "tg.distributed.init('nccl') before anything is moved to a GPU",
        )
    return found
