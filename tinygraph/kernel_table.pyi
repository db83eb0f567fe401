# tinygraph.watch.kernel_table, by its former path; python -m tests.stubs writes this file
from tinygraph.watch.kernel_table import *
