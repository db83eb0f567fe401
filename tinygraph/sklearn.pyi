# tinygraph.interop.sklearn, by its former path; python -m tests.stubs writes this file
from tinygraph.interop.sklearn import *
