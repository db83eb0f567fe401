"""A folder for each exercise; TINYGRAPH_EXERCISES names folders with further ones, as PATH does."""

import os

__path__ += [
    place for place in os.environ.get("TINYGRAPH_EXERCISES", "").split(os.pathsep) if place
]
