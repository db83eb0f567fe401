"""data_parallel: the gradients of a batch, from shards that any number of processes compute.

    rank 0    shards 0, 1    forward and backward, one by one    g0 + g1 \\
    rank 1    shards 2, 3    forward and backward, one by one    g2 + g3 / (g0 + g1) + (g2 + g3)

A shard of n_s of the N samples counts n_s / N: backward begins with that, so that the sum is the
gradient of the mean over the batch, also where shards differ in size.  Two messages are sent:

    the head        for each shard what its function returned, which gradients there are, whether a
                    rank has failed: a step fails on all ranks or on none
    the gradients   of all parameters side by side, and running statistics, n_s / N of each

Sums run in the order of tree_sum.py.  So losses, gradients and running statistics have the same
bits for every number of ranks, one included.

Source: Goyal et al., "Accurate, large minibatch SGD: training ImageNet in 1 hour",
arXiv:1706.02677 (weights, statistics of each shard); Li et al., "EasyScale: elastic training with
consistent accuracy and improved utilization on GPUs", SC 2023 (fixed shards).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from tinygraph.base import ArgumentError, DeviceError, one_blas_thread, whole
from tinygraph.data.share import Rows
from tinygraph.distributed.flat import Flat
from tinygraph.distributed.head import Found, Head, Returned
from tinygraph.distributed.joined import world
from tinygraph.distributed.overlap import Overlap, buckets_of
from tinygraph.distributed.shards import Part, Shard, parts_of, require_few, rows_of
from tinygraph.engine import Array, Tensor, default_generator
from tinygraph.optim.members import listed


@runtime_checkable
class Holder(Protocol):
    """What holds parameters, buffers and layers: a Module, which stands above this room."""

    def parameters(self) -> Iterable[Any]:
        """All of them, each one once."""

    def buffers(self) -> Iterable[Any]:
        """All of them, each one once."""

    def modules(self) -> Iterable[Any]:
        """It and all below it."""


def data_parallel(
    fn: Callable[..., Any],
    model: Holder | Iterable[Tensor],
    shards: int | None = None,
    bucket_mb: float | None = None,
) -> DataParallel:
    """A function that does on a batch what `fn` does, in shards, on all ranks.

    Parameters
    ----------
    fn : function of a batch
        Calls `backward()`, and returns numbers or Tensors of one element: means over the samples
        where they are floats, counts where they are ints; several in a tuple, or None.  It makes
        no update.  What `tg.compile` returns will do.
    model : Module, or iterable of Tensor
        Its parameters are all the leaves that get gradients; its buffers are brought together too.
        All ranks must have the same numbers in them; see `synchronize`.
    shards : int, optional
        In how many parts each batch is computed: by default as many as there are ranks, rounded up
        to a power of two.  The bits of the results depend on it, and not on the number of ranks.
        A model with layers that need all ranks for each batch (`Module.spans_ranks`) has as many
        shards as ranks, and results that are equal to rounding.
    bucket_mb : float, optional
        Send gradients in parts of so many MB, each as soon as backward of a rank's last shard has
        completed it; for a function that calls `backward` once, not compiled.  The same bits.  By
        default all are sent after backward: on one machine that is as fast, see
        docs/benchmarks/distributed.md.

    Returns
    -------
    DataParallel
        To be called with the whole batch, the same on all ranks: arrays or Tensors whose axis 0
        are the samples.  Afterwards `.grad` of the leaves is the gradient of the mean over the
        batch, on all ranks alike, in the place of what was there.

    Raises
    ------
    DeviceError
        The model lies on a GPU, and the launch has joined by MPI.
    ArgumentError
        A number of shards below 1; when called, arguments that are not N samples each.
    GraphError
        `fn` makes an update, or a leaf gets a gradient that is none of the model's.
    DistributedError
        On the other ranks, where one has failed.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> model = tg.nn.Linear(2, 1)
    >>> def learn(x, y):
    ...     loss = tg.mse_loss(model(x), y)
    ...     loss.backward()
    ...     return loss
    >>> gradients = tg.distributed.data_parallel(learn, model, shards=4)
    >>> x, y = np.ones((10, 2), np.float32), np.ones((10, 1), np.float32)
    >>> loss = gradients(x, y)
    >>> model.weight.grad.shape
    (1, 2)
    """
    return DataParallel(fn, model, shards, bucket_mb=bucket_mb)


class Ran(NamedTuple):
    """What a shard has left beside gradients."""

    part: Part
    found: Any  # what the function returned
    streams: int  # of random numbers
    reached: list[bool]  # for each leaf, whether it has a gradient
    buffers: list[Array]


class DataParallel:
    """What `data_parallel` returns.

    Attributes
    ----------
    shards : int
        In how many parts each batch is computed.
    spans_ranks : bool
        Whether a layer of the model needs all ranks for each batch.
    is_split : bool
        Whether one has a part of its parameters on each rank.
    same_batch : bool
        Whether these layers take the same samples on all ranks, and not some on each.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        model: Holder | Iterable[Tensor],
        shards: int | None = None,
        read: Callable[[Any], Any] | None = None,
        bucket_mb: float | None = None,
    ) -> None:
        self.fn, self.world = fn, world()
        self._read = read  # makes numbers of what fn returns, where it returns something else
        self.run: Callable[[Rows, Any], Iterable[Ran]] = self.run_shards
        size = self.world.size
        if self.world.crowd and self.world.local_rank == 0:
            warnings.warn(self.world.crowd, stacklevel=3)
        self.leaves, self.buffers = _leaves_of(model)
        # A parameter that is split among the ranks has its whole gradient where it is.
        added = [leaf for leaf in self.leaves if _parted(leaf) is None]
        self.is_split = len(added) < len(self.leaves)
        self.same_batch = _have_the_same_batch(self.leaves)
        layers = model.modules() if isinstance(model, Holder) else []
        self.spans_ranks = self.is_split or any(layer.spans_ranks for layer in layers)
        usual = size if self.spans_ranks else usual_shards(size)
        self.shards = usual if shards is None else whole("data_parallel", "shards", shards)
        if self.spans_ranks and self.shards != size:
            expected = f"as many as ranks, {size}, where a layer needs all of them for each batch"
            raise ArgumentError("data_parallel", "shards", expected, self.shards, "leave it out")
        self._known = set(self.leaves)
        floats = [buffer for buffer in self.buffers if buffer.dtype.kind == "f"]
        kinds = dict.fromkeys((x.dtype, x.device) for x in (*added, *floats))
        if size > 1 and self.world.name != "NCCL" and any(not place.on_host for _, place in kinds):
            expected = "a launch that joins by NCCL, for a model on device 'cuda'"
            way_out = "tg.distributed.init('nccl') before the model is moved"
            raise DeviceError("data_parallel", "backend", expected, self.world.name, way_out)
        if bucket_mb is not None and not bucket_mb > 0:
            raise ArgumentError("data_parallel", "bucket_mb", "MB above 0", bucket_mb)
        self.flats = []  # one message for each dtype, and on each device, or for each bucket
        for kind in kinds:
            leaves, buffers = ([x for x in some if _kind(x) == kind] for some in (added, floats))
            if bucket_mb is not None:
                some = buckets_of(leaves, bucket_mb * 1e6)
                self.flats += [Flat(bucket, [], *kind, size) for bucket in some]
                leaves = []
            if leaves or buffers:
                self.flats.append(Flat(leaves, buffers, *kind, size))
        self._overlap = None if bucket_mb is None else Overlap(self.flats, self.world)

    def __call__(self, *batch: Any) -> Returned:
        """Gradients of a whole batch, which all ranks have: see `data_parallel`."""
        own = self.rows(_samples(batch))
        return self.of_rows(own, *[each[own.first : own.stop] for each in batch])

    def rows(self, samples: int, rank: int | None = None) -> Rows:
        """Which rows of a batch are those of a rank, by default of this one."""
        rank = self.world.rank if rank is None else rank
        if self.same_batch:
            return Rows(0, samples, samples)
        return Rows(*rows_of(samples, self.shards, rank, self.world.size), samples)

    def of_rows(self, rows: Rows, *batch: Any) -> Returned:
        """The same, where a rank has its own rows of the batch alone: see `DataLoader.part`."""
        own, given = self.rows(rows.samples), _samples(batch)
        if rows != own or given != own.stop - own.first:
            expected = f"the rows {own.first} to {own.stop} of a batch of {own.samples}"
            got = f"{given} rows, {rows.first} to {rows.stop}"
            raise ArgumentError("data_parallel", "batch", expected, got)
        least = self.world.size if self.spans_ranks and not self.same_batch else 1
        if own.samples < least:
            expected = f"at least {least} sample{'s, one for each rank' if least > 1 else ''}"
            way_out = "drop_last=True leaves a smaller last batch out"
            raise ArgumentError("data_parallel", "batch", expected, own.samples, way_out)
        require_few(self.shards, own.samples, self.world.size)
        self._head = Head(self.world, self.shards, len(self.leaves), len(self.buffers))
        draws, kept = default_generator.state_dict(), [_copy(x) for x in self.buffers]
        self._before = draws, kept
        failure: Exception | None = None
        after: Sequence[Array] = kept
        try:
            with one_blas_thread():
                after = self._compute(rows, batch, kept)
        except Exception as error:
            if self.spans_ranks or self.world.size == 1:  # the others, if any, wait elsewhere
                raise
            failure = error
        finally:
            self.go_back()
        found = self._exchanged(failure)
        for flat in self.flats:
            flat.add_up(self.world)
        self._hand_out(found, after, own.samples)
        draws["stream"] += found.streams
        default_generator.load_state_dict(draws)
        return found.counted_once(self.world.size) if self.same_batch else found.returned

    def _exchanged(self, failure: Exception | None) -> Found:
        """What all ranks have found.  Of messages every rank has begun the same ones by then."""
        if self._overlap is None:
            return self._head.exchange(failure)
        self._overlap.start_all()
        try:
            return self._head.exchange(failure)
        except Exception:
            self._overlap.settle()
            raise

    def _parts(self, samples: int) -> list[Part]:
        """What this rank computes: its shards, or its copy of the batch."""
        size = self.world.size
        if self.same_batch:
            return [Part(self.world.rank, 0, samples, samples * size)]
        return parts_of(samples, self.shards, self.world.rank, size)

    def _rows_of_ranks(self, samples: int) -> tuple[int, ...] | None:
        if not self.spans_ranks:
            return None
        each = [self.rows(samples, rank) for rank in range(self.world.size)]
        return tuple(rows.stop - rows.first for rows in each)

    def _compute(self, rows: Rows, batch: Any, kept: Sequence[Array]) -> Sequence[Array]:
        """Every shard of this rank, and what it has found; what the first one made of buffers."""
        self._head.begin()
        before = _on_host(self.buffers, kept)
        first: Sequence[Array] | None = None
        for ran in self.run(rows, batch):
            first = ran.buffers if first is None else first
            after = _on_host(self.buffers, ran.buffers)
            changed = [bool((x != y).any()) for x, y in zip(after, before, strict=True)]
            found = ran.found if self._read is None else self._read(ran.found)
            self._head.note(ran.part, found, ran.streams, ran.reached, changed)
            del ran, found  # the next shard needs the room
        return kept if first is None else first

    def run_shards(self, rows: Rows, batch: Any) -> Iterator[Ran]:
        """Compute every shard of this rank, all from the state that is found, one at a time.

        Nothing is read that lies on a GPU.  The gradients are left in `flats`.
        """
        draws, kept = default_generator.state_dict(), [_copy(x) for x in self.buffers]
        for flat in self.flats:
            flat.begin(self.shards)
        counts, parts = self._rows_of_ranks(rows.samples), self._parts(rows.samples)
        overlap = self._overlap
        if overlap is not None:
            overlap.begin()
        for part in parts:
            if part.first == part.stop:
                for flat in self.flats:
                    flat.put_nothing(part)
                continue
            default_generator.load_state_dict(draws)
            self._set_buffers(kept)
            for leaf in self.leaves:
                leaf.grad = None
            own = part.within(rows.first)
            if overlap is not None and part is parts[-1]:
                overlap.watch(part)
            completed = None if overlap is None else overlap.complete
            with Shard(part, self._known, of_ranks=counts, completed=completed, batch=batch):
                found = self.fn(*[each[own] for each in batch])
            reached = [leaf.grad is not None for leaf in self.leaves]
            streams = default_generator.stream - draws["stream"]
            for flat in self.flats[overlap.begun if overlap else 0 :]:
                flat.put(part)
            ran = Ran(part, found, streams, reached, [_copy(x) for x in self.buffers])
            del found
            yield ran
            del ran

    def go_back(self) -> None:
        """To the random numbers and buffers before this batch."""
        draws, kept = self._before
        default_generator.load_state_dict(draws)
        self._set_buffers(kept)

    def _set_buffers(self, values: Sequence[Array]) -> None:
        for buffer, value in zip(self.buffers, values, strict=True):
            buffer.value[...] = value

    def _hand_out(self, found: Found, after: Sequence[Array], samples: int) -> None:
        """Gradients and buffers of the batch.  Integers, as of a counter, are those of a shard."""
        reached = dict(zip(self.leaves, found.reached, strict=True))
        changed = dict(zip(self.buffers, found.changed, strict=True))
        for flat in self.flats:
            flat.hand_out(reached, changed)
        counts = [
            (x, value)
            for x, value in zip(self.buffers, after, strict=True)
            if x.dtype.kind != "f" and changed[x]
        ]
        held = [self.rows(samples, rank) for rank in range(self.world.size)]
        have = [rows.first < rows.stop for rows in held]
        for buffer, value in counts:
            known = value if all(have) else self.world.broadcast(value, have.index(True))
            buffer.value[...] = known


def usual_shards(size: int) -> int:
    """As many shards as ranks, rounded up to a power of two.

    >>> [usual_shards(size) for size in (1, 2, 3, 4, 5)]
    [1, 2, 4, 4, 8]
    """
    return 1 << (size - 1).bit_length()


def _leaves_of(model: Holder | Iterable[Tensor]) -> tuple[list[Any], list[Any]]:
    """The leaves that get gradients, and the buffers."""
    if isinstance(model, Holder):
        return list(model.parameters()), list(model.buffers())
    leaves = listed("data_parallel", "model", model, "a Module, or Tensors")
    if not all(isinstance(leaf, Tensor) for leaf in leaves):
        got = sorted({type(leaf).__name__ for leaf in leaves})
        raise ArgumentError("data_parallel", "model", "a Module, or Tensors", ", ".join(got))
    return leaves, []


def _samples(batch: Sequence[Any]) -> int:
    """How many samples all parts of a batch have."""
    sizes = [np.shape(each)[:1] for each in batch]
    if not sizes or len({*sizes}) > 1 or not sizes[0]:
        expected = "arrays and Tensors with the samples on axis 0, as many in each"
        got = [np.shape(each) for each in batch] or "none"
        raise ArgumentError("data_parallel", "batch", expected, got)
    return sizes[0][0]


def _parted(leaf: Any) -> Any:
    """How a leaf is split among the ranks; None where it is not."""
    return getattr(leaf, "parted", None)


def _have_the_same_batch(leaves: Iterable[Any]) -> bool:
    """Whether split layers are computed on the same samples everywhere."""
    kinds = {parted.same_batch for parted in map(_parted, leaves) if parted is not None}
    if len(kinds) > 1:
        expected = "layers of which all, or none, take the same samples on all ranks"
        way_out = "scheme='same' for each of them, or for none"
        raise ArgumentError("data_parallel", "model", expected, "both", way_out)
    return True in kinds


def _kind(node: Any) -> tuple[Any, Any]:
    return node.dtype, node.device


def _copy(node: Any) -> Array:
    array: Array = node.device.copy(node.value)
    return array


def _on_host(nodes: Sequence[Any], arrays: Sequence[Array]) -> list[Array]:
    """Arrays of some nodes as the host can read them; of those of a GPU, for a single wait."""
    there = [(node, array) for node, array in zip(nodes, arrays, strict=True)]
    far = [array for node, array in there if not node.device.on_host]
    if not far:
        return list(arrays)
    (device,) = {node.device for node, _ in there if not node.device.on_host}
    read = iter(device.to_host(*far))
    return [array if node.device.on_host else next(read) for node, array in there]
