# tinygraph.base.errors, by its former path; python -m tests.stubs writes this file
from tinygraph.base.errors import *
