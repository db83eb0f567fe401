# tinygraph.engine.running, by its former path; python -m tests.stubs writes this file
from tinygraph.engine.running import *
