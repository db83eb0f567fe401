"""Which elements are dropped: those whose random words are too small.

`word >= least_word(p)` says of word i of a stream what `uniform >= float32(p)` says of number i.
"""

from __future__ import annotations

import math

import numpy as np

from tinygraph.engine import Array, Words, philox

_BLOCK = 1 << 14  # words, which stay in a cache


def least_word(p: float) -> int:
    """The smallest word that is kept where a share p is dropped; at most the largest word.

    >>> hex(least_word(0.5))
    '0x8000000000000000'
    """
    return min(math.ceil(float(np.float32(p)) * 2**24) << 40, (1 << 64) - 1)


def write_kept(words: Words, p: float, kept: Array) -> Array:
    """Write which elements of a new array of bools are kept, one word for each."""
    least, skip, flat = np.uint64(least_word(p)), words.first % 4, kept.reshape(-1)
    bits = philox(words.seed, words.stream, 0, words.first // 4)
    bits.random_raw(skip)
    for at in range(0, flat.size, _BLOCK):
        part = flat[at : at + _BLOCK]
        np.greater_equal(bits.random_raw(part.size), least, out=part)
    return kept
