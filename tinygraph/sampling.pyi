# tinygraph.ops.leaves.sampling, by its former path; python -m tests.stubs writes this file
from tinygraph.ops.leaves.sampling import *
