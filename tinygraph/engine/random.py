"""Random numbers that are the same on every device: Philox4x64-10, counter based.

Philox turns a key and a counter into four random 64-bit words; there is no state to carry along.
Word i of a stream is therefore a function of (seed, stream, step, i) alone.  A batch cut into
tiles, another thread or a GPU all compute the same word for the same element.  numpy has the same
generator as `numpy.random.Philox`, and everything here is made of it.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tinygraph.base import ArgumentError, CheckpointError
from tinygraph.engine.device import get_device
from tinygraph.engine.running import here
from tinygraph.engine.spec import Array, Shape

_WORD = (1 << 64) - 1
_STATE = ("seed", "stream")  # of a Generator


def philox(seed: int, stream: int, step: int = 0, first_block: int = 0) -> np.random.Philox:
    """numpy's bit generator on the stream (seed, stream, step), four words before `first_block`.

    The key is (seed, stream); the counter counts blocks of four words in its low 128 bits and holds
    `step` in the third word.  numpy increments the counter before it generates, hence the minus 1.
    """
    counter = ((step << 128) + first_block - 1) % (1 << 256)
    return np.random.Philox(counter=counter, key=((stream & _WORD) << 64) | (seed & _WORD))


def uniform(
    shape: Shape, dtype: Any, seed: int, stream: int, step: int = 0, first: int = 0
) -> Array:
    """Uniform numbers in [0, 1): elements first, first + 1, ... of a stream, one word for each.

    float64 takes the high 53 bits of a word, float32 the high 24: both are exact, and a float32
    number is the float64 number rounded down.
    """
    count = int(np.prod(shape, dtype=np.int64))
    skip = first % 4
    words = philox(seed, stream, step, first // 4).random_raw(skip + count)[skip:]
    if np.dtype(dtype) == np.float32:
        return np.multiply(words >> np.uint64(40), np.float32(2.0**-24), dtype=dtype).reshape(shape)
    return np.multiply(words >> np.uint64(11), 2.0**-53, dtype=dtype).reshape(shape)


class Words(NamedTuple):
    """Random words that are made where they are needed, as often as they are, and never kept.

    An op gets them by `mem.words`.  Kernels make theirs with philox.cuh.
    """

    seed: int
    stream: int
    first: int = 0  # the place of this tile's first word in the stream
    start: Any = None  # for kernels, an array: empty, or a seed and what is added to the stream


def first_word(of_row: int, rows: int, first_sample: int, samples: int | None) -> int:
    """Where a part of a batch begins in a stream that has `of_row` words for each row.

    The rows of the part are those of its samples, in order: as many for each, or several samples
    in one row.  Rows that do not belong to samples evenly are the same in every part.

    >>> first_word(5, rows=12, first_sample=8, samples=4)  # three rows of each
    120
    """
    if samples is None:
        return first_sample * of_row
    return 0 if rows * of_row % samples else first_sample * rows * of_row // samples


class Generator:
    """A seed and the number of the next stream: all that a run needs to be repeated or resumed.

    Each draw takes a stream of its own, so that the numbers of one do not depend on how many
    another has taken.

    Parameters
    ----------
    device : str
        A device that is there.  It changes nothing: all have the same numbers.
    seed : int
        0 to 2**64 - 1.

    Examples
    --------
    >>> import tinygraph as tg
    >>> mine = tg.Generator().manual_seed(1)
    >>> numbers = tg.rand(3, generator=mine).value
    >>> bool((numbers == tg.rand(3, generator=mine.manual_seed(1)).value).all())
    True
    """

    def __init__(self, device: Any = "cpu", *, seed: int = 0) -> None:
        self.device = get_device(device)
        self._lock = threading.Lock()
        self.manual_seed(seed)

    def manual_seed(self, seed: int) -> Generator:
        """Start again at stream 0 of `seed`, an int from 0 to 2**64 - 1; returns itself."""
        try:
            number = operator.index(seed)
        except TypeError:
            raise ArgumentError("manual_seed", "seed", "an int", repr(seed)) from None
        if not 0 <= number <= _WORD:
            raise ArgumentError("manual_seed", "seed", "0 to 2**64 - 1", seed)
        self.seed, self.stream = number, 0
        return self

    def initial_seed(self) -> int:
        """The seed that was set last."""
        return self.seed

    def next_stream(self) -> int:
        """The number of a stream that nobody has used since the seed was set."""
        with self._lock:
            self.stream += 1
            return self.stream - 1

    def numpy(self) -> np.random.Generator:
        """A numpy generator on the next stream, for normal numbers, permutations and the like.

        A shard of a batch has numbers of its own: how many words one takes is not known beforehand.
        """
        return np.random.Generator(philox(self.seed, self.next_stream(), here.top.first_sample))

    def state_dict(self) -> dict[str, int]:
        """The seed and the next stream, as plain ints."""
        return {"seed": self.seed, "stream": self.stream}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on where `state_dict` was taken."""
        words = [state.get(name) if isinstance(state, Mapping) else None for name in _STATE]
        if not all(type(word) is int and 0 <= word <= _WORD for word in words):
            expected = "seed and stream, ints from 0 to 2**64 - 1"
            raise CheckpointError("load_state_dict", "generator", expected, f"{state!r:.80}")
        self.seed, self.stream = state["seed"], state["stream"]


default_generator = Generator()


def manual_seed(seed: int) -> None:
    """Seed every random number that tinygraph draws without being told a seed of its own.

    Parameters
    ----------
    seed : int
        0 to 2**64 - 1.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.manual_seed(1)
    >>> a = tg.randn(3)
    >>> tg.manual_seed(1)
    >>> b = tg.randn(3)
    >>> bool((a.value == b.value).all())
    True
    """
    default_generator.manual_seed(seed)
