# tinygraph.ops.leaves.creation, by its former path; python -m tests.stubs writes this file
from tinygraph.ops.leaves.creation import *
