"""make torture: every kind of fault in full, and a table of figures.

    python -m tests.faults.torture [--only KIND ...] [--count N] [--seed N] [--json]

Exit code 1 if a single fault broke a promise.  A failure is printed with what makes it again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from importlib import import_module

# Before numpy is loaded: kills.py forks, and eight threads shall not be eight times all cores.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# kind: its module, the argument that says how often, and the full figure
KINDS = {
    "kills": ("kills", "count", 1000),
    "ranks": ("rank_kills", "count", 100),
    "pairs": ("pairs", "count", 300),
    "signals": ("signals", "count", 300),
    "streams": ("closed_streams", "count", 300),
    "disks": ("full_disks", "count", 1000),
    "strangers": ("hostile_files", "count", 5000),
    "checkpoints": ("checkpoint_damage", "count", 100_000),
    "data": ("data_damage", "count", 10_000),
    "allocations": ("allocations", "every", 1),
    "threads": ("threads", "count", 1000),
    "nan": ("planted_nans", "count", 10),
}


def run(kind, count=None, seed=0):
    """One kind of fault: its tally, and how long it took."""
    module, argument, full = KINDS[kind]
    torment = import_module(f"tests.faults.{module}").torment
    started = time.perf_counter()
    tally = torment(**{argument: full if count is None else count}, seed=seed)
    return tally, time.perf_counter() - started


def table_row(tally, seconds):
    """A line of the table: kind, how many, failures, time."""
    return f"{tally.kind:<24}{tally.count:>9,}{len(tally.failures):>10,}{seconds:>9.1f} s"


def main(arguments=None):
    """The program; returns its exit code."""
    parser = argparse.ArgumentParser(prog="make torture", description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--count", type=int, help="how often (allocations: every N-th)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="one JSON object in place of the table")
    options = parser.parse_args(arguments)
    if options.count is not None and options.count < 1:
        parser.error("--count must be at least 1")
    warnings.simplefilter("ignore")
    results = {}
    if not options.json:
        print(f"{'fault':<24}{'count':>9}{'failures':>10}{'time':>11}", flush=True)
    for kind in options.only:
        tally, seconds = results[kind] = run(kind, options.count, options.seed)
        if options.json:
            continue
        print(table_row(tally, seconds))
        for outcome, number in tally.outcomes.most_common():
            print(f"    {number:>9,}  {outcome}")
        if tally.notes:
            print(f"    {tally.notes}")
        for line in tally.failures[:10]:
            print(f"    FAILED {line}")
        sys.stdout.flush()
    if options.json:
        print(
            json.dumps(
                {
                    kind: {**vars(tally), "seconds": seconds}
                    for kind, (tally, seconds) in results.items()
                }
            )
        )
    return int(any(tally.failures for tally, _ in results.values()))


if __name__ == "__main__":
    sys.exit(main())
