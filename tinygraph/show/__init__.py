"""Pictures: a graph, the curves of a training, the filters of a convolution.

Each function writes a file and returns its path.  `graph` needs no library; `curves` and `filters`
draw with matplotlib: pip install 'tinygraph-nn[plot]'.
"""

from tinygraph.show.curves import curves
from tinygraph.show.drawing import graph
from tinygraph.show.filters import filters

__all__ = ["curves", "filters", "graph"]
