"""DataLoader: a dataset cut into batches, in an order that can be repeated and taken up again.

The order of an epoch is a pure function of (seed, epoch).  Where a run stands in its data is
therefore two numbers: the epoch, and the batches of it that were handed out.

    epoch 0                      epoch 1
    | b0 | b1 | b2 | b3 |        | b0 | b1 | b2 | b3 |
                                           ^ state: epoch 1, position 2
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any

import numpy as np

from tinygraph.base import ArgumentError, CheckpointError, whole
from tinygraph.base.checks import alone
from tinygraph.data.feed import feed
from tinygraph.data.fetch import Collate, Fetcher
from tinygraph.data.prefetch import ahead
from tinygraph.data.samplers import cut, samplers_of, seed_of
from tinygraph.data.share import ALL, Rows, share_of
from tinygraph.data.workers import Crew, Start
from tinygraph.engine import Array, Device, get_device

Batch = Any  # as the dataset or collate_fn makes it: mostly (inputs, labels)


class _Place:
    """Where a loader stands, and its parts with it."""

    def __init__(self) -> None:
        self.stand(0, 0)

    def stand(self, epoch: int, position: int) -> None:
        """Before a batch; whichever iterator is under way no longer counts."""
        self.epoch, self.position = epoch, position
        self.running: object | None = None  # the run whose batches count
        self.cuts: tuple[int, list[Array]] | None = None  # an epoch, and its batches


class DataLoader:
    """Batches of a dataset.  Each `for` goes through one epoch, from its first batch.

    Samples are read by `dataset[i]`, for one int each, and put together by `collate_fn`.  A dataset
    that makes batches itself, such as `ArrayDataset`, is asked for a whole batch.

    A `for` that is left early leaves its epoch behind: the next one starts the next epoch, as in
    PyTorch.  Only after `load_state_dict` does a `for` begin in the middle of an epoch.

    Parameters
    ----------
    dataset : Dataset
        Or anything with `__getitem__(int)` and a length.
    batch_size : int
        Samples in a batch; the last one may be smaller.
    shuffle : bool
        Whether each epoch has an order of its own.
    sampler : Sampler, optional
        The order of an epoch, in place of `shuffle`: any iterable of ints with a length.
    batch_sampler : BatchSampler, optional
        The batches of an epoch, in place of `batch_size`, `shuffle`, `sampler` and `drop_last`: any
        iterable of lists of ints with a length.
    num_workers : int
        Processes that make the batches, the same ones in the same order for any number; 0 for this
        process.  They pay where reading a sample takes long.  They are spawned: a script needs
        `if __name__ == "__main__":`, and the dataset is sent to each at the start of an epoch.
    collate_fn : callable, optional
        Makes a batch of a list of samples; by default `default_collate`, which gives Tensors.
    pin_memory : bool
        Taken, and changes nothing: what goes to a GPU goes through pinned memory anyway.  Of
        `pin_memory_device` and `in_order` the same is true: batches come in order always.
    drop_last : bool
        Leave out the last batch where it is smaller.
    timeout : float
        Seconds to wait for a batch of a worker; 0 for any time.
    worker_init_fn : callable, optional
        Called in each worker with its number, before its first batch.
    multiprocessing_context : str, optional
        How workers are started: "spawn" by default, "forkserver", or "fork", which takes datasets
        of a notebook and may hang where threads run; or a context of `multiprocessing`.
    generator : Generator, optional
        Gives the seed.
    prefetch_factor : int, optional
        How many batches each worker makes in advance; by default 2.
    persistent_workers : bool
        Keep the workers, and the datasets that they have, from one epoch to the next.
    seed : int
        Together with the number of the epoch, it fixes the order.
    prefetch : int
        Without workers, make up to this many batches in advance, in one background thread; 0 for no
        thread.  The batches and their order are the same.  2 keeps one batch ready while another is
        made.  The thread ends with the epoch, or when the iterator is closed or dropped.
    device : str, optional
        "cuda": arrays and Tensors of a batch come as Tensors there, each copied in the background
        while the batch before is used.  They hold their values until the next one is asked for.

    Attributes
    ----------
    epoch : int
        The number of the epoch under way, or of the next one.  It counts up when an epoch has been
        gone through, or the next is begun; may be assigned.
    position : int
        How many batches of this epoch were handed out.  Prefetched batches do not count.
    rows : Rows or None
        Which rows of the whole batch the last one that was handed out has, as `(first, stop,
        samples)`: all of them, unless this loader is a `part`.  None before the first.

    Raises
    ------
    ArgumentError
        A batch size below 1, prefetch below 0, or a bad seed; arguments that exclude each other; a
        dataset without `__getitem__` or length.
    WorkerError
        A worker was killed, or is not in time; others raise what the dataset has raised.
    ShapeError, DtypeError
        When a batch is asked for: samples that do not go together, or not as many as asked for.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> data = tg.data.ArrayDataset(np.arange(5.0), np.arange(5))
    >>> loader = tg.data.DataLoader(data, batch_size=2)
    >>> [labels.tolist() for _, labels in loader]
    [[0, 1], [2, 3], [4]]
    >>> len(loader), loader.epoch
    (3, 1)
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Collate | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        seed: int = 0,
        prefetch: int = 0,
        device: str | Device | None = None,
    ) -> None:
        self.dataset = dataset
        self.shuffle = bool(shuffle)
        self.seed = seed_of("DataLoader", generator, seed)
        self.drop_last = bool(drop_last)
        self.sampler, self.batch_sampler = samplers_of(
            dataset, batch_size, shuffle, sampler, batch_sampler, drop_last, self.seed
        )
        self.batch_size = None if self.sampler is None else self.batch_sampler.batch_size
        self.collate_fn = collate_fn
        self.pin_memory = bool(pin_memory)
        self.prefetch = whole("DataLoader", "prefetch", prefetch, 0)
        self.num_workers = whole("DataLoader", "num_workers", num_workers, 0)
        if self.num_workers:
            alone("DataLoader", "num_workers", {"prefetch": prefetch}, "prefetch_factor=...")
        else:
            given = {"prefetch_factor": prefetch_factor is not None}
            given["persistent_workers"] = persistent_workers
            alone("DataLoader", "num_workers=0", given, "num_workers=1 or more")
        start = Start(self.num_workers, worker_init_fn, multiprocessing_context, timeout)
        self._crew = Crew(start, prefetch_factor, persistent_workers)
        self.device = get_device(device)
        self.rows: Rows | None = None
        self._share = ALL
        self._place = _Place()

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        return len(self.batch_sampler)

    @property
    def epoch(self) -> int:
        """The number of the epoch under way, or of the next one."""
        return self._place.epoch

    @epoch.setter
    def epoch(self, number: int) -> None:
        self._place.stand(whole("DataLoader", "epoch", number, 0), 0)

    @property
    def position(self) -> int:
        """How many batches of this epoch were handed out."""
        return self._place.position

    def order(self, epoch: int) -> Array:
        """The order in which an epoch visits the samples."""
        return np.concatenate([np.empty(0, np.int64), *self._cut(epoch)])

    def __iter__(self) -> Iterator[Batch]:
        return self.batches()

    def batches(self, device: Device | None = None) -> Iterator[Batch]:
        """What a `for` goes through, for a device: on a GPU Tensors there, as with `device=`."""
        place = self._place
        if place.running is not None:  # an epoch that was left early
            place.stand(place.epoch + 1, 0)
        run = place.running = object()
        to = self.device if device is None or not self.device.on_host else device
        return self._run(run, place.epoch, place.position, to)

    def _run(self, run: object, epoch: int, position: int, device: Device) -> Iterator[Batch]:
        """The batches of an epoch from a position on; keeps the state while no other run began."""
        place, share = self._place, self._share
        cuts = self._cut(epoch)[position:]
        read = map(share.read, cuts)
        fetcher = Fetcher(self.dataset, self.collate_fn)
        if self.num_workers:
            batches: Any = self._crew.batches(fetcher, self.seed, epoch, position, read)
        else:
            batches = (fetcher.batch(epoch, indices) for indices in read)
        if self.prefetch:
            batches = ahead(batches, self.prefetch, f"epoch {epoch}, batch", position)
        batches = share.each_held(batches, cuts)
        if not device.on_host:
            batches = feed(batches, device)
        with closing(batches):
            for batch, indices in zip(batches, cuts, strict=False):  # the batches end first
                if place.running is run:
                    place.position += 1
                self.rows = share.rows(len(indices))
                yield batch
        if place.running is run:
            place.stand(epoch + 1, 0)

    def _cut(self, epoch: int) -> list[Array]:
        """The indices of each batch of an epoch; a sampler is asked once for the one under way."""
        place = self._place
        if place.cuts is None or place.cuts[0] != epoch:
            place.cuts = epoch, cut(self.batch_sampler, epoch)
        return place.cuts[1]

    def first_batch(self) -> Batch:
        """The first batch of the epoch; the loader stays where it is."""
        cuts = self._cut(self.epoch)
        if not cuts:
            raise ArgumentError("DataLoader", "dataset", "samples for at least one batch", "none")
        read = self._share.read(cuts[0])
        batch = Fetcher(self.dataset, self.collate_fn).batch(self.epoch, read)
        return self._share.held(batch, len(cuts[0]))

    def part(self, rank: int, size: int, shards: int | None = None) -> DataLoader:
        """A loader of one rank's rows of every batch, which reads no others from the dataset.

        A batch of N samples is cut into S shards, shard s being rows N*s//S ... N*(s+1)//S.  Rank r
        holds shards S*r//size ... S*(r+1)//size: the rows of all ranks, one after the other, are
        the batch.  `part.rows` says which ones the batch that was handed out last has.

        Where a rank holds no row of a batch, its arrays and Tensors have none; one sample is read
        for their shapes and dtypes.

        The order, its seed, the epoch and the position are those of this loader, shared with it: a
        batch that the part hands out counts here, and a state taken here is of the whole batches.
        It is taken up with any number of ranks.  Go through one part of a loader at a time.

        Parameters
        ----------
        rank : int
            From 0 to size - 1.
        size : int
            How many ranks there are.
        shards : int, optional
            S; by default one for each rank.  With fewer than ranks, some ranks hold nothing.

        Returns
        -------
        DataLoader

        Raises
        ------
        ArgumentError
            A rank outside the ranks, a size or shards below 1; this loader is a part itself.

        Examples
        --------
        >>> import numpy as np, tinygraph as tg
        >>> data = tg.data.ArrayDataset(np.arange(5.0), np.arange(5))
        >>> loader = tg.data.DataLoader(data, batch_size=3)
        >>> part = loader.part(rank=1, size=2)
        >>> [(labels.tolist(), part.rows.first, part.rows.samples) for _, labels in part]
        [([1, 2], 1, 3), ([4], 1, 2)]
        """
        if not self._share.whole:
            way_out = "call part of the loader that this one was made from"
            raise ArgumentError(
                "DataLoader.part", "self", "a loader of whole batches", "a part", way_out
            )
        part = copy.copy(self)  # with the same place
        part.rows, part._share = None, share_of(rank, size, shards)
        return part

    def state_dict(self) -> dict[str, Any]:
        """Where this loader stands, as plain ints and bools.

        Returns
        -------
        dict
            `seed`, `epoch`, `position` (batches of this epoch that were handed out; prefetched ones
            do not count), `shuffle`, `batch_size`, `drop_last` and `length` (of the dataset).

        Examples
        --------
        >>> import numpy as np, tinygraph as tg
        >>> data = tg.data.ArrayDataset(np.arange(5.0), np.arange(5))
        >>> loader = tg.data.DataLoader(data, batch_size=2)
        >>> for _ in loader:
        ...     break
        >>> state = loader.state_dict()
        >>> again = tg.data.DataLoader(data, batch_size=2)
        >>> again.load_state_dict(state)
        >>> [labels.tolist() for _, labels in again]
        [[2, 3], [4]]
        """
        return {**self._settings(), "epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken: the next `for` begins with the batch that was next.

        A state taken after the last batch, before its `for` had ended, has none left: the next
        `for` is empty and ends that epoch.

        Parameters
        ----------
        state : mapping
            From a loader of the same settings, on a dataset of the same length.  `num_workers`
            and `prefetch` are free to differ.

        Raises
        ------
        CheckpointError
            The state is incomplete or of another loader; the message lists what differs.
        """
        settings = self._settings()
        absent = [name for name in (*settings, "epoch", "position") if name not in state]
        if absent:
            raise CheckpointError(
                "DataLoader",
                "state",
                "the entries of state_dict()",
                f"none named {', '.join(absent)}",
            )
        differing = [name for name in settings if state[name] != settings[name]]
        if differing:
            raise CheckpointError(
                "DataLoader",
                "state",
                _listed(settings, differing),
                _listed(state, differing),
                "make the loader with the settings of the "
                "state, on the same dataset, or start a new run",
            )
        for name, most in (("epoch", (1 << 64) - 1), ("position", len(self))):
            if type(state[name]) is not int or not 0 <= state[name] <= most:
                raise CheckpointError(
                    "DataLoader", f"state[{name!r}]", f"an int from 0 to {most}", repr(state[name])
                )
        self._place.stand(state["epoch"], state["position"])

    def _settings(self) -> dict[str, Any]:
        """What must be equal, so that a position means the same batches."""
        return {
            "seed": self.seed,
            "shuffle": self.shuffle,
            "batch_size": self.batch_size,
            "drop_last": self.drop_last,
            "length": len(self.dataset if hasattr(self.dataset, "__len__") else self.batch_sampler),
        }


def _listed(values: Mapping[str, Any], names: list[str]) -> str:
    return ", ".join(f"{name} {values[name]!r}" for name in names)
