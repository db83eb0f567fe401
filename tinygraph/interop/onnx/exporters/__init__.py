"""How each op is written in ONNX, a file for each family; loading this fills the table."""

from tinygraph.interop.onnx.exporters import arithmetic as arithmetic
from tinygraph.interop.onnx.exporters import elementwise as elementwise
from tinygraph.interop.onnx.exporters import indexing as indexing
from tinygraph.interop.onnx.exporters import losses as losses
from tinygraph.interop.onnx.exporters import networks as networks
from tinygraph.interop.onnx.exporters import recurrent as recurrent
from tinygraph.interop.onnx.exporters import reductions as reductions
from tinygraph.interop.onnx.exporters import shapes as shapes
from tinygraph.interop.onnx.exporters import windows as windows
from tinygraph.interop.onnx.table import exporter as exporter
from tinygraph.interop.onnx.table import exporter_of as exporter_of
