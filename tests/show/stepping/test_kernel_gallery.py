"""The pages of the gallery: their counts are the profile's, their numbers those of the arrays."""

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.cuda.test_gallery import RIGHT, WRONG
from tinygraph.cuda.emulator.record import Wish
from tinygraph.cuda.stepping.data import launch_data

pytestmark = [pytest.mark.second, pytest.mark.usefixtures("launched_once")]

# Lanes that skip turns of a loop without a barrier in it: the profile, which sees one thread after
# the other, puts their n-th visits of a line into one request.  A page puts lanes into one that are
# in one turn.
SKIPPED_TURNS = {
    "convolution_constant_mask",
    "oob_constant_mask",
    "race_bitonic_inner_step",
    "race_blelloch_down_sweep",
    "race_odd_even_pairs",
}
LIMIT = 300_000  # events
ACCESS = {"read": "load", "write": "store", "atomic": "atomic"}


@pytest.fixture(autouse=True)
def two_seconds(monkeypatch):
    monkeypatch.setenv("TINYGRAPH_KERNEL_TIMEOUT", "2")


def traced(case):
    """One launch, recorded and profiled at once: report, its trace as data, what arrays hold."""
    launch, kernel, arguments = case.launch()
    blocks = tuple(range(math.prod(launch.grid)))
    if len(blocks) > 1024:
        pytest.skip(f"{len(blocks)} blocks: more than a trace holds")
    ready = kernel._to_check(launch.grid, launch.block, tuple(arguments.values()), launch.shared)
    report = kernel._report(ready, True, Wish(blocks, LIMIT))
    if report.trace.cut:
        pytest.skip(f"{len(report.trace) + report.trace.cut} events: more than a page holds")
    arrays = {name: getattr(value, "array", value) for name, value in arguments.items()}
    return report, launch_data([report.trace], []), arrays


def of_page(data):
    """(file, line, space, access, bytes) -> requests, took, least, over all blocks."""
    sums = Counter()
    for block in data["runs"][0]["blocks"]:
        for step in block["steps"]:
            if "cost" not in step:
                continue
            shared = data["arrays"][step["array"]]["space"] == "shared"
            file, space = data["files"][step["file"]]["name"], "shared" if shared else "global"
            key = file, step["line"], space, ACCESS[step["kind"]], step["size"]
            for name, n in zip(("requests", "took", "least"), (1, *step["cost"]), strict=True):
                sums[*key, name] += n
    return sums


def of_profile(lines):
    sums = Counter()
    for c in lines:
        key = Path(c.file).name, c.line, c.space, c.access, c.size
        took = (c.sectors, c.least_sectors)
        if c.space == "shared":
            took = (c.wavefronts, c.least_wavefronts)
        for name, n in zip(("requests", "took", "least"), (c.requests, *took), strict=True):
            sums[*key, name] += n
    return sums


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("case", RIGHT + WRONG)
def test_requests_sectors_and_turns_are_the_profiles(case):
    report, data, arrays = traced(case)
    found, wanted = of_page(data), of_profile(report.lines)
    if case.path.stem in SKIPPED_TURNS:
        requests = [
            sum(n for key, n in sums.items() if key[-1] == "requests") for sums in (found, wanted)
        ]
        assert found != wanted and requests[0] >= requests[1]
    else:
        assert found == wanted
    if case.path.parent.name == "right":
        assert_memory_is_right(data, arrays)


def assert_memory_is_right(data, arrays):
    """After its last step the page shows what the launch has left in its arguments."""
    blocks = data["runs"][0]["blocks"]
    for number, shown in enumerate(data["arrays"]):
        if shown["space"] != "global" or not isinstance(arrays.get(shown["name"]), np.ndarray):
            continue
        left = arrays[shown["name"]].reshape(-1)
        cells = {
            begin + k: value
            for begin, values in blocks[-1]["initial"][number]
            for k, value in enumerate(values)
        }
        for step in blocks[-1]["steps"]:
            if step.get("array") == number:
                cells |= dict(step.get("stored", []))
        held = np.array([left.dtype.type(cells[k]) for k in range(left.size)])
        np.testing.assert_array_equal(held, left, shown["name"])
