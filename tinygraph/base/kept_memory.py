"""Freed memory stays with the process for the next arrays, up to a bound.

By itself glibc takes the memory of a large array from the system and gives it back when the array
dies; the system fills it with zeros, page by page, at each step of a training.  With other bounds
it is kept: an eager step of SRCNN has 20 page faults then, where it had 6,000.

TINYGRAPH_KEEP_MEMORY=0 leaves malloc as it is; another number is the bound in MB.  Whoever has set
glibc's own variables has the last word; another libc has no such bounds.

Source: glibc manual, "Malloc Tunable Parameters".
"""

from __future__ import annotations

import ctypes
import os
import warnings

VARIABLE = "TINYGRAPH_KEEP_MEMORY"
# MB that malloc keeps, two steps of a network with 200 MB of values; and of an array: larger ones
# go back to the system at once, for what comes after them rarely fits into the gaps they leave.
MOST, LARGEST = 1024, 256
OF_GLIBC = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_")
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt


def keep_memory() -> int:
    """Set the bounds of malloc; the MB that it keeps, 0 where it is left as it is."""
    megabytes = _wanted()
    tuned = "malloc" in os.environ.get("GLIBC_TUNABLES", "")
    if not megabytes or tuned or any(name in os.environ for name in OF_GLIBC):
        return 0
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return 0
    array, kept = (min(most << 20, 2**31 - 1) for most in (min(megabytes, LARGEST), megabytes))
    return megabytes if mallopt(_MMAP_THRESHOLD, array) and mallopt(_TRIM_THRESHOLD, kept) else 0


def _wanted() -> int:
    text = os.environ.get(VARIABLE, "").strip()
    if (text.isdecimal() and len(text) < 20) or not text:
        return int(text or MOST)
    warnings.warn(
        f"{VARIABLE}: expected a whole number of MB, 0 or more, got {text!r}. "
        f"Way out: unset {VARIABLE}, which is {MOST}",
        UserWarning,
        stacklevel=2,
    )
    return MOST
