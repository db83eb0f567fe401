# tinygraph.engine.autograd, by its former path; python -m tests.stubs writes this file
from tinygraph.engine.autograd import *
