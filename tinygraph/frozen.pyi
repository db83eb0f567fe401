# tinygraph.base.frozen, by its former path; python -m tests.stubs writes this file
from tinygraph.base.frozen import *
