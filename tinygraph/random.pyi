# tinygraph.engine.random, by its former path; python -m tests.stubs writes this file
from tinygraph.engine.random import *
