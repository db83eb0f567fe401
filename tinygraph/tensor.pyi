# tinygraph.engine.tensor, by its former path; python -m tests.stubs writes this file
from tinygraph.engine.tensor import *
