"""Plans beside graphs, on as many random graphs as are asked for: the tests draw a few of each.

python -m tests.plan.many_graphs --count 3000
"""

import argparse
import sys
import time
import warnings

from hypothesis import HealthCheck, settings

from tests.plan import test_compile


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="many_graphs", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000, metavar="N", help="graphs of each kind")
    count = parser.parse_args(arguments).count
    if count < 1:
        parser.error(f"--count: expected at least 1, got {count}")
    many = settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    for name in (
        "test_random_graphs",
        "test_random_graphs_with_backward_inside",
        "test_any_cut_of_a_batch",
    ):
        started = time.monotonic()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            many(getattr(test_compile, name))()
        words = name.removeprefix("test_").replace("_", " ")
        print(f"{words}: {count:,}, all equal ({time.monotonic() - started:.0f} s)", flush=True)


if __name__ == "__main__":
    sys.exit(main())
