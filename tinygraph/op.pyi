# tinygraph.engine.op, by its former path; python -m tests.stubs writes this file
from tinygraph.engine.op import *
