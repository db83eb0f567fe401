"""How each op is written in ONNX, a file for each family; loading this fills the table."""

from tinygraph.onnx.exporters import arithmetic as arithmetic
from tinygraph.onnx.exporters import elementwise as elementwise
from tinygraph.onnx.exporters import indexing as indexing
from tinygraph.onnx.exporters import losses as losses
from tinygraph.onnx.exporters import networks as networks
from tinygraph.onnx.exporters import recurrent as recurrent
from tinygraph.onnx.exporters import reductions as reductions
from tinygraph.onnx.exporters import shapes as shapes
from tinygraph.onnx.exporters import windows as windows
from tinygraph.onnx.table import exporter as exporter
from tinygraph.onnx.table import exporter_of as exporter_of
