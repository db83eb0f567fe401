# tinygraph.interop.onnx, by its former path; python -m tests.stubs writes this file
from tinygraph.interop.onnx import *
