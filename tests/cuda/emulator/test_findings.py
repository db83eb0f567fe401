"""A Report as text, in colour, and as JSON."""

import dataclasses
import json
import re

import numpy as np
import pytest

from tests.cuda.emulator.launching import check
from tinygraph.cuda import Finding, Report
from tinygraph.cuda.emulator.findings import CAUSES, LineCounts

WRONG = """
__global__ void wrong(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) y[i] = 2 * x[i];
}"""
TRANSPOSE = """
__global__ void turned(const float* x, float* y) {
    __shared__ float tile[32][32];
    tile[threadIdx.y][threadIdx.x] = x[threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    y[threadIdx.y * 32 + threadIdx.x] = 3 * tile[threadIdx.x][threadIdx.y];
}"""


@pytest.fixture(scope="module")
def wrong():
    return check(WRONG, 2, 32, np.ones(40, np.float32), np.zeros(40, np.float32), 40)


@pytest.fixture(scope="module")
def profiled():
    x = np.ones((32, 32), np.float32)
    return check(TRANSPOSE, 1, (32, 32), x, np.zeros_like(x), profile=True)


def test_a_finding_has_all_its_fields(wrong):
    (finding,) = wrong.findings
    assert dataclasses.asdict(finding) == {
        "kind": "out-of-bounds",
        "file": "<source>",
        "line": 4,
        "array": "x",
        "index": 40,
        "text": "if (i <= n) y[i] = 2 * x[i];",
        "block": (1, 0, 0),
        "thread": (8, 0, 0),
        "other_file": "",
        "other_line": None,
        "other_block": None,
        "other_thread": None,
        "event": None,
        "others": 0,
        "note": False,
        "same_value": False,
        "message": "wrong, block (1, 0, 0) thread (8, 0, 0), x[40]: read of 4 bytes; x has 40 "
        "elements\n  <source>:4: if (i <= n) y[i] = 2 * x[i];\n"
        f"Usual cause: {CAUSES['out-of-bounds']}.",
    }
    assert not wrong.ok and wrong.kernel == "wrong"


def test_the_text_holds_kind_place_line_and_message(wrong):
    lines = wrong.text().splitlines()
    assert lines[:4] == [
        "wrong: 1 finding",
        "",
        "out-of-bounds  <source>:4",
        "     4 | if (i <= n) y[i] = 2 * x[i];",
    ]
    assert lines[4:] == [f"  {line}" for line in wrong.findings[0].message.splitlines()]


def test_colour_adds_codes_and_nothing_else(wrong, profiled):
    for report in (wrong, profiled):
        coloured = report.text(colour=True)
        assert "\x1b[" in coloured and "\x1b" not in report.text()
        assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == report.text()
        assert coloured.count("\x1b[0m") == coloured.count("\x1b[") / 2  # all are closed


def test_the_dictionary_is_json_and_whole(wrong, profiled):
    for report in (wrong, profiled):
        told = json.loads(json.dumps(report.to_dict()))
        assert told["kernel"] == report.kernel and told["ok"] is report.ok
        assert [
            Finding(**{**f, "block": tuple(f["block"]), "thread": tuple(f["thread"])})
            for f in told["findings"]
        ] == report.findings
        assert len(told["lines"]) == len(report.lines)
        assert (told["bytes"], told["operations"]) == (report.bytes, report.operations)


def test_the_table_of_lines(profiled):
    """1024 threads are 32 warps: 128 sectors each way, and a column of the tile in one bank."""
    assert profiled.ok
    last = profiled.text().splitlines()[-1]
    assert (profiled.bytes, profiled.operations) == (2 * 4096, 1024)
    assert last == (
        "  8,192 bytes of global memory, 1,024 floating-point operations: 0.125 operations a byte"
    )
    table = {(row.space, row.access): row for row in profiled.lines}
    assert set(table) == {(s, a) for s in ("global", "shared") for a in ("load", "store")}
    text = profiled.text()
    assert re.search(
        r" 4 \| global load    4 B x      32 warps:  4.00 sectors/request, 100% used "
        r" +tile\[threadIdx.y\]",
        text,
    )
    assert re.search(r" 6 \| shared load    4 B x      32 warps: 32-way bank conflict +y\[", text)
    assert re.search(r" 4 \| shared store   4 B x      32 warps: no bank conflict", text)
    told = {(row["space"], row["access"]): row for row in profiled.to_dict()["lines"]}
    assert told["shared", "load"]["bank_conflict"] == 32
    assert told["global", "load"]["coalescing"] == 1


def test_numbers_of_findings_are_spelled_and_nothing_is_divided_by_zero():
    two = Report("k", [Finding("race", "a"), Finding("unwritten-output", "b\nc", "k.cu")])
    assert two.text().splitlines() == [
        "k: 2 findings",
        "",
        "race  ",
        "  a",
        "",
        "unwritten-output  k.cu",
        "  b",
        "  c",
    ]
    assert Report("k").text() == "k: clean" and Report("k").intensity == 0
    empty = LineCounts("k.cu", 1, "", "global", "load", 4, 0)
    assert (empty.sectors_per_request, empty.coalescing, empty.bank_conflict) == (0, 1, 1)
