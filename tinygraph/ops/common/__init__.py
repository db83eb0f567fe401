"""What several wings share: broadcasting, launches, sums, random numbers, casts.

A page imports from here, `from tinygraph.ops.common import THREADS, documented, promote`; files of
this folder import from each other.  A file is loaded with the first of its names.
"""

from typing import TYPE_CHECKING

from tinygraph.base.lazy import lazy

if TYPE_CHECKING:
    from tinygraph.ops.common.arguments import *  # noqa: F403
    from tinygraph.ops.common.axes import *  # noqa: F403
    from tinygraph.ops.common.broadcast import for_each_broadcast, rounded, sum_broadcast, sum_to
    from tinygraph.ops.common.cast import *  # noqa: F403
    from tinygraph.ops.common.docstrings import documented
    from tinygraph.ops.common.launch import *  # noqa: F403
    from tinygraph.ops.common.lines import maxima, sums
    from tinygraph.ops.common.operands import *  # noqa: F403
    from tinygraph.ops.common.totals import *  # noqa: F403
else:
    _NAMES = {
        "arguments": "as_axes as_axis padding_2d pair require_bias require_images require_indices "
        "require_ndim require_range",
        "axes": "Sets arranged as_int64 restored sets_of",
        "broadcast": "for_each_broadcast rounded sum_broadcast sum_to",
        "cast": "Cast astype clone floats given_in with_dtype",
        "docstrings": "documented",
        "launch": "MOST_BLOCKS THREADS ChunkedLaunch column_sums for_each grid_of on_elements "
        "remembered",
        "lines": "maxima sums",
        "operands": "ALL FLOATS NUMBERS Broadcasting as_bits broadcast_claim choose device_of "
        "joint_shape plain promote require_one_dtype result_type select unbroadcast",
        "totals": "add_parts add_where sum_over total",
    }
    _HOMES = {
        name: f"{__name__}.{file}" for file, names in _NAMES.items() for name in names.split()
    }
    __getattr__, __dir__ = lazy(__name__, _HOMES)
