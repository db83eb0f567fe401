"""DataLoader: a dataset cut into batches, in an order that can be repeated and taken up again.

The order of an epoch is a pure function of (seed, epoch).  Where a run stands in its data is
therefore two numbers: the epoch, and the batches of it that were handed out.

    epoch 0                      epoch 1
    | b0 | b1 | b2 | b3 |        | b0 | b1 | b2 | b3 |
                                           ^ state: epoch 1, position 2
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from typing import Any, Protocol

import numpy as np

from tinygraph.checks import MAX_WORD, whole
from tinygraph.data.dataset import SHUFFLE_STREAM, permutation
from tinygraph.data.feed import feed
from tinygraph.data.prefetch import ahead
from tinygraph.device import Device, get_device
from tinygraph.errors import CheckpointError
from tinygraph.shapes import Array

Batch = tuple[Any, Any]


class Dataset(Protocol):
    """What a DataLoader needs: a length, and (inputs, labels) at an array of ints.

    A dataset whose samples differ from epoch to epoch has a method `for_epoch(epoch)` that returns
    the dataset of that epoch.
    """

    def __len__(self) -> int: ...
    def __getitem__(self, index: Any, /) -> tuple[Any, Any]: ...


class DataLoader:
    """Batches of a dataset.  Each `for` goes through one epoch, from its first batch.

    A `for` that is left early leaves its epoch behind: the next one starts the next epoch, as in
    PyTorch.  Only after `load_state_dict` does a `for` begin in the middle of an epoch.

    Parameters
    ----------
    dataset : ArrayDataset, ImageFolder, TransformedDataset
        Or anything with a length that gives (inputs, labels) at an array of ints.
    batch_size : int
        Samples in a batch; the last one may be smaller.
    shuffle : bool
        Whether each epoch has an order of its own.
    seed : int
        Together with the number of the epoch, it fixes the order.
    drop_last : bool
        Leave out the last batch where it is smaller.
    prefetch : int
        Make up to this many batches in advance, in one background thread; 0 for no thread.  The
        batches and their order are the same.  2 keeps one batch ready while another is made.  The
        thread ends with the epoch, or when the iterator is closed or dropped.
    device : str, optional
        "cuda": inputs and labels come as Tensors there, each copied in the background while the
        batch before is used.  They hold their values until the next one is asked for.

    Attributes
    ----------
    epoch : int
        The number of the epoch under way, or of the next one.  It counts up when an epoch has been
        gone through, or the next is begun; may be assigned.
    position : int
        How many batches of this epoch were handed out.  Prefetched batches do not count.

    Raises
    ------
    ArgumentError
        A batch size below 1, prefetch below 0, or a bad seed.

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
        dataset: Dataset,
        batch_size: int = 1,
        shuffle: bool = False,
        seed: int = 0,
        drop_last: bool = False,
        prefetch: int = 0,
        device: str | Device | None = None,
    ) -> None:
        self.dataset = dataset
        self.batch_size = whole("DataLoader", "batch_size", batch_size)
        self.shuffle = bool(shuffle)
        self.seed = whole("DataLoader", "seed", seed, 0, MAX_WORD)
        self.drop_last = bool(drop_last)
        self.prefetch = whole("DataLoader", "prefetch", prefetch, 0)
        self.device = get_device(device)
        self._running: object | None = None  # the run whose batches count
        self._place(0, 0)

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + bool(rest and not self.drop_last)

    @property
    def epoch(self) -> int:
        """The number of the epoch under way, or of the next one."""
        return self._epoch

    @epoch.setter
    def epoch(self, number: int) -> None:
        self._place(whole("DataLoader", "epoch", number, 0), 0)

    @property
    def position(self) -> int:
        """How many batches of this epoch were handed out."""
        return self._position

    def order(self, epoch: int) -> Array:
        """The order in which an epoch visits the samples."""
        if self.shuffle:
            return permutation(len(self.dataset), self.seed, SHUFFLE_STREAM, epoch)
        return np.arange(len(self.dataset))

    def __iter__(self) -> Iterator[Batch]:
        return self.batches()

    def batches(self, device: Device | None = None) -> Iterator[Batch]:
        """What a `for` goes through, for a device: on a GPU Tensors there, as with `device=`."""
        if self._running is not None:  # an epoch that was left early
            self._place(self._epoch + 1, 0)
        run = self._running = object()
        place = self.device if device is None or not self.device.on_host else device
        return self._run(run, self._epoch, self._position, place)

    def _run(self, run: object, epoch: int, position: int, device: Device) -> Iterator[Batch]:
        """The batches of an epoch from a position on; keeps the state while no other run began."""
        batches: Any = self._cut(epoch, position)
        if self.prefetch:
            batches = ahead(batches, self.prefetch, f"epoch {epoch}, batch", position)
        if not device.on_host:
            batches = feed(batches, device)
        with closing(batches):
            for batch in batches:
                if self._running is run:
                    self._position += 1
                yield batch
        if self._running is run:
            self._place(epoch + 1, 0)

    def _cut(self, epoch: int, position: int) -> Generator[Batch, None, None]:
        for_epoch = getattr(self.dataset, "for_epoch", None)
        dataset = self.dataset if for_epoch is None else for_epoch(epoch)
        order = self.order(epoch)
        for batch in range(position, len(self)):
            start = batch * self.batch_size
            yield dataset[order[start : start + self.batch_size]]

    def _place(self, epoch: int, position: int) -> None:
        """Stand before a batch; whichever iterator is under way no longer counts."""
        self._epoch, self._position = epoch, position
        self._running = None

    def state_dict(self) -> dict[str, int | bool]:
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
        return {**self._settings(), "epoch": self._epoch, "position": self._position}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken: the next `for` begins with the batch that was next.

        A state taken after the last batch, before its `for` had ended, has none left: the next
        `for` is empty and ends that epoch.

        Parameters
        ----------
        state : mapping
            From a loader of the same settings, on a dataset of the same length.  `prefetch` is free
            to differ.

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
        self._place(state["epoch"], state["position"])

    def _settings(self) -> dict[str, int | bool]:
        """What must be equal, so that a position means the same batches."""
        return {
            "seed": self.seed,
            "shuffle": self.shuffle,
            "batch_size": self.batch_size,
            "drop_last": self.drop_last,
            "length": len(self.dataset),
        }


def _listed(values: Mapping[str, Any], names: list[str]) -> str:
    return ", ".join(f"{name} {values[name]!r}" for name in names)
