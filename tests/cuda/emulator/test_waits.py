"""Blocks that wait for each other: which of them, and for which elements."""

import numpy as np
import pytest

from tests.cuda.emulator.launching import kernel
from tinygraph.cuda import InOut

HEAD = "__global__ void k(volatile int* a, volatile int* b) {\nconst int n = blockIdx.x;\n"


def finding_of(body, grid):
    a, b = np.zeros(8, np.int32), np.zeros(8, np.int32)
    report = kernel(f"{HEAD}{body}\n}}").check(grid, 1, InOut(a), InOut(b), timeout=0.3)
    (finding,) = report.findings
    return finding


@pytest.mark.second
def test_two_blocks_that_wait_for_each_others_flags():
    finding = finding_of("while (a[1 - n] == 0) { }\na[n] = 1;", 2)
    assert (finding.kind, finding.line, finding.block) == ("deadlock", 3, (0, 0, 0))
    assert "block (0,0,0) waits for a[1] to change and block (1,0,0) for a[0]" in finding.message


@pytest.mark.second
def test_three_blocks_in_a_circle():
    finding = finding_of("while (a[(n + 1) % 3] == 0) { }\na[n] = 1;", 3)
    assert finding.kind == "deadlock"
    assert "block (0,0,0) waits for a[1] to change and block (1,0,0) for a[2]" in finding.message


@pytest.mark.second
def test_flags_in_two_arrays():
    first = "if (n == 0) { while (a[0] == 0) { }\nb[0] = 1; }\n"
    body = first + "else { while (b[0] == 0) { }\na[0] = 1; }"
    finding = finding_of(body, 2)
    assert (finding.kind, finding.line, finding.other_line) == ("deadlock", 3, 5)
    assert "waits for a[0] to change and block (1,0,0) for b[0]" in finding.message


@pytest.mark.second
def test_a_block_that_waits_for_a_later_one():
    first = "if (n == 0) while (atomicAdd((int*)a + 5, 0) == 0) { }\n"
    body = first + "if (n == 3) atomicExch((int*)a + 5, 1);"
    finding = finding_of(body, 4)
    assert (finding.kind, finding.line, finding.other_line) == ("deadlock", 3, 4)
    assert "block (0,0,0) waits for a[5], which block (3,0,0) changes" in finding.message


@pytest.mark.second
@pytest.mark.parametrize(
    "body, grid",
    [
        ("while (a[0] == 0) { }", 1),
        ("while (a[0] == 0) { }", 4),  # all for one flag that nobody sets
        ("while (a[n + 1] == 0) { }\na[n] = 1;", 3),  # a chain that nobody begins
        ("while (atomicCAS((int*)a, 0, 1) != 0) { }", 3),  # a lock that is not given back
    ],
)
def test_a_flag_that_nobody_sets_is_no_deadlock(body, grid):
    finding = finding_of(body, grid)
    assert (finding.kind, finding.line) == ("timeout", 3)


def test_a_block_that_waits_for_an_earlier_one_goes_on():
    a, b = np.zeros(8, np.int32), np.zeros(8, np.int32)
    body = "if (n > 0) while (a[n - 1] == 0) { }\n__threadfence();\na[n] = 1;"
    assert kernel(f"{HEAD}{body}\n}}").check(6, 1, InOut(a), InOut(b)).ok
