"""Pictures: a graph, and what a training did; and a page with all of them.

Each function but `activations` writes a file and returns its path.  `graph` and `report` need no
library; the others draw with matplotlib: the extra `plot`.
"""

from tinygraph.show.activations import activations
from tinygraph.show.confusion import confusion_matrix
from tinygraph.show.curves import curves
from tinygraph.show.feature_maps import feature_maps
from tinygraph.show.filters import filters
from tinygraph.show.graph_picture import graph
from tinygraph.show.histograms import histograms
from tinygraph.show.kernel_bars import kernel_bars
from tinygraph.show.op_bars import op_bars
from tinygraph.show.run_report import ReportContents, report
from tinygraph.show.samples import samples

__all__ = [
    "ReportContents",
    "activations",
    "confusion_matrix",
    "curves",
    "feature_maps",
    "filters",
    "graph",
    "histograms",
    "kernel_bars",
    "op_bars",
    "report",
    "samples",
]
