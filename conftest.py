"""What every test and every doctest stands on: how many examples, from which seed, in which order.

Two runs of one command give the same results.  Hypothesis draws from the name and text of a test,
but in the profile `nightly`, which draws from a new seed and prints it.  Tests run in an order that
is shuffled by a seed: 1, or that of `--order-seed`; 0 leaves them as they are written.
"""

import os
import random
import secrets
import signal
import zlib

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

import tinygraph as tg

pytest_plugins = ["tests.advice"]

# One contract is run by many classes, and machines are shared: neither is a fault of a test.
CALM = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.differing_executors, HealthCheck.too_slow],
}
settings.register_profile("dev", max_examples=8, derandomize=True, **CALM)
settings.register_profile("ci", max_examples=30, derandomize=True, **CALM)
settings.register_profile("nightly", max_examples=5000, derandomize=False, **CALM)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "dev")
settings.load_profile(PROFILE)

# Programs that tests start inherit what is ignored, as nohup and a `&` in a script leave it.
for _signal in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, signal.SIG_DFL)

# Files of exercises are read by the course; by themselves some cannot be loaded.
collect_ignore_glob = ["course/exercises/*", "course/tinygraph_course/exercises/*"]

# Hypothesis mixes the constants of the modules that are loaded into what it draws: which these are
# depends on the tests that ran before.
providers.is_local_module_file = lambda path: False


def pytest_addoption(parser):
    parser.addoption(
        "--order-seed", type=int, default=1, metavar="N", help="order of the tests; 0: as written"
    )


@pytest.hookimpl(tryfirst=True)  # before hypothesis looks for its seed
def pytest_configure(config):
    if PROFILE == "nightly" and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(secrets.randbits(32))  # workers of xdist get it too


def pytest_terminal_summary(terminalreporter, config):
    if PROFILE == "nightly":
        seed = config.option.hypothesis_seed
        terminalreporter.line(f"profile nightly: again with --hypothesis-seed={seed}")


def pytest_collection_modifyitems(config, items):
    leave_for_the_night(items)
    items[:] = shuffled(items, config.option.order_seed)


def leave_for_the_night(items):
    """Of a sweep, marked `sweep(n)`, the second tier runs one variant in n, always the same ones.

    The others get the mark `nightly`.
    """
    sweeps = {}
    for item in items:
        for mark in item.iter_markers("sweep"):
            name = item.nodeid.partition("[")[0]
            sweeps.setdefault((name, *mark.args), []).append(item)
    for (_, n), variants in sweeps.items():
        variants.sort(key=lambda item: zlib.crc32(item.nodeid.encode()))
        for item in variants[-(-len(variants) // n) :]:
            item.add_marker("nightly")


def shuffled(items, seed):
    """Items with their files in an order of the seed's, and so those of a file; 0: as they are."""
    if not seed:
        return list(items)
    files = {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    rng = random.Random(seed)
    order = list(files.values())
    rng.shuffle(order)
    for tests in order:
        rng.shuffle(tests)
    return [item for tests in order for item in tests]


def pytest_runtest_setup(item):
    """Each test finds the generator of tinygraph as after an import."""
    tg.manual_seed(0)
