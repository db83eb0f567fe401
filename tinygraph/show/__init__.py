"""Pictures: a graph, and what a training did; and a page with all of them.

Each function but `activations` writes a file and returns its path.  `graph` and `report` need no
library; the others draw with matplotlib: the extra `plot`.
"""

from tinygraph.show.activations import activations as activations
from tinygraph.show.confusion import confusion_matrix as confusion_matrix
from tinygraph.show.curves import curves as curves
from tinygraph.show.feature_maps import feature_maps as feature_maps
from tinygraph.show.filters import filters as filters
from tinygraph.show.graph_picture import graph as graph
from tinygraph.show.histograms import histograms as histograms
from tinygraph.show.profile_bars import profile_bars as profile_bars
from tinygraph.show.run_report import ReportContents as ReportContents
from tinygraph.show.run_report import report as report
from tinygraph.show.samples import samples as samples
from tinygraph.show.stepping.steps import steps as steps
