# tinygraph.watch.costs, by its former path; python -m tests.stubs writes this file
from tinygraph.watch.costs import *
