"""`python -m tinygraph` is the command `tinygraph`."""

import sys

from tinygraph_command import main

if __name__ == "__main__":
    sys.exit(main())
