"""What every room may use, and which knows no tensor: errors, checks, dtypes, files, pages.

What most files need is imported from here, `from tinygraph.base import ShapeError, frozen, whole`.
Files of this room import from each other.
"""

from typing import TYPE_CHECKING

from tinygraph.base.checks import number, one_of, whole
from tinygraph.base.errors import *  # noqa: F403
from tinygraph.base.frozen import frozen
from tinygraph.base.incoming import unmasked
from tinygraph.base.lazy import above
from tinygraph.base.lazy import lazy as _lazy
from tinygraph.base.threads import one_blas_thread

if TYPE_CHECKING:
    from tinygraph.base.free_memory import too_large
    from tinygraph.base.page_paths import writable
    from tinygraph.base.paths import AnyPath, as_path
else:
    _PATHS = dict.fromkeys(("AnyPath", "as_path"), "tinygraph.base.paths")
    _HOMES = {"too_large": "tinygraph.base.free_memory", "writable": "tinygraph.base.page_paths"}
    __getattr__, __dir__ = _lazy(__name__, _HOMES | _PATHS)
