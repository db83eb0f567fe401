# tinygraph.engine.device, by its former path; python -m tests.stubs writes this file
from tinygraph.engine.device import *
