"""How often gradcheck fails on ops that are right: never, it is hoped.

    python -m tests.testing.false_alarms --examples 100000 [--seed 1] [--only Relu]

Examples are drawn from the contracts of all ops, in float64 and float32, with smooth values and
with values that tie and sit on kinks.  The exit code is 1 where there is a false alarm.
"""

import argparse
import sys
import time
from collections import Counter

import tinygraph as tg
from tests.testing.drawn import call, contracts, draw, inputs_of, with_values
from tinygraph.base.errors import ArgumentError


def check(contract, problem, dtype, values):
    """The report, or None where the values are outside of what the op takes."""
    tied = problem._replace(args=tuple(with_values(a, values) for a in problem.args))
    inputs, wrt, fn = inputs_of(contract, tied, dtype)
    try:
        return tg.testing.gradcheck(fn, inputs, wrt, raise_on_failure=False)
    except ArgumentError:  # a probability that was rounded out of its range
        return None


def run(examples, seed=None, only=()):
    """Counts of verdicts by dtype and values, and the false alarms."""
    counts, alarms = Counter(), []
    chosen = {name: c for name, c in contracts().items() if not only or name in only}
    share = max(1, -(-examples // len(chosen)))
    for name, contract in chosen.items():
        for problem, dtype, values in draw(call(contract), share, seed):
            report = check(contract, problem, dtype, values)
            if report is None:
                counts["refused by the op"] += 1
                continue
            counts[report.verdict] += 1
            counts[f"{dtype.__name__}, {values}"] += 1
            if report.verdict == "fail":
                alarms.append((name, problem, dtype.__name__, values, report))
    return counts, alarms


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--only", nargs="*", default=())
    args = parser.parse_args(argv)
    start = time.perf_counter()
    counts, alarms = run(args.examples, args.seed, args.only)
    for name, problem, dtype, values, report in alarms[:20]:
        print(f"{name} {dtype} {values} {problem.kwargs}\n{report}")
        print(*problem.args, sep="\n")
    total = counts["pass"] + counts["fail"] + counts["inconclusive"]
    print(*(f"{count:8d}  {what}" for what, count in sorted(counts.items())), sep="\n")
    print(f"{len(alarms)} false alarms of {total} examples in {time.perf_counter() - start:.0f} s")
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
