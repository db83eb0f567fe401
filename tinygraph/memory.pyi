# tinygraph.engine.memory, by its former path; python -m tests.stubs writes this file
from tinygraph.engine.memory import *
