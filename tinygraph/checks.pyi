# tinygraph.base.checks, by its former path; python -m tests.stubs writes this file
from tinygraph.base.checks import *
