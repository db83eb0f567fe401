"""A small case file, as an author writes it, for the tests of what reads, makes and runs cases."""


def small_file(**changes):
    """A file with one case of tanh, as an author would write it."""
    case = {
        "name": "mine",
        "kind": "ordinary",
        "source": "tests/reference",
        "args": {"x": {"shape": [2], "draw": {"seed": 1}}},
        **changes,
    }
    return {"op": "tanh", "cases": [{k: v for k, v in case.items() if v is not None}]}
