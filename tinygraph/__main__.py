"""`python -m tinygraph` is the command `tinygraph`."""

import sys

from tinygraph.cli import main

if __name__ == "__main__":
    sys.exit(main())
