"""What every room may use, and which knows no tensor: errors, checks, dtypes, files, pages.

What most files need is imported from here, `from tinygraph.base import ShapeError, frozen, whole`.
Files of this room import from each other.
"""

from tinygraph.base.checks import number, one_of, whole
from tinygraph.base.errors import *  # noqa: F403
from tinygraph.base.frozen import frozen
from tinygraph.base.incoming import unmasked
from tinygraph.base.lazy import above
