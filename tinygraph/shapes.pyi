# tinygraph.engine.spec, by its former path; python -m tests.stubs writes this file
from tinygraph.engine.spec import *
