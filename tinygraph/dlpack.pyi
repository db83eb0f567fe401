# tinygraph.interop.dlpack, by its former path; python -m tests.stubs writes this file
from tinygraph.interop.dlpack import *
