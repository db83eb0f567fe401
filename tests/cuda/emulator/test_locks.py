"""Locks that threads take in different orders: a deadlock in some order of execution."""

import re

import numpy as np
import pytest

from tests.cuda.emulator.launching import kernel
from tinygraph.cuda import InOut

LOCKS = """
__device__ void lock(int* l) { while (atomicCAS(l, 0, 1) != 0) { } __threadfence(); }
__device__ void unlock(int* l) { __threadfence(); atomicExch(l, 0); }
__global__ void k(int* locks, int* money)
{
"""
MOVE = "money[from] -= 1; money[to] += 1;\n"
BY_BLOCK = "int from = blockIdx.x % 2, to = 1 - from;\n"
BY_THREAD = "int from = threadIdx.x % 2, to = 1 - from;\n"
IN_TURN = f"""lock(locks + from); lock(locks + to); // <-
{MOVE} unlock(locks + to); unlock(locks + from);"""
BY_INDEX = f"""lock(locks + min(from, to)); lock(locks + max(from, to));
{MOVE} unlock(locks + to); unlock(locks + from);"""
UNDER_A_THIRD = f"lock(locks + 7);\n{IN_TURN}\nunlock(locks + 7);"
GIVES_WAY = f"""for (bool done = false; !done;) {{
    lock(locks + from);
    if (atomicCAS(locks + to, 0, 1) == 0) {{
        __threadfence();
        {MOVE} unlock(locks + to);
        done = true;
    }}
    unlock(locks + from);
}}"""
GIVES_UP = GIVES_WAY.replace("!done;", "!done; done = true")
BY_EXCHANGE = f"""while (atomicExch(locks + from, 1)) {{ }}
while (atomicExch(locks + to, 1)) {{ }} // <-
__threadfence();
{MOVE} unlock(locks + to);
__threadfence();
((volatile int*)locks)[from] = 0;"""
RING = f"int from = blockIdx.x, to = (blockIdx.x + 1) % gridDim.x;\n{IN_TURN}"
AFTER_A_BARRIER = f"""int from = threadIdx.x, to = 1 - from;
if (threadIdx.x == 0) {{ {IN_TURN} }}
BARRIER
if (threadIdx.x == 1) {{ {IN_TURN} }}"""


def second(*values):
    return pytest.param(*values, marks=pytest.mark.second)


def findings(body, grid, block=1):
    accounts = np.arange(8, dtype=np.int32)
    report = kernel(f"{LOCKS}{body}\n}}").check(
        grid, block, InOut(np.zeros(8, np.int32)), InOut(accounts), timeout=1
    )
    assert accounts.sum() == 28  # of the first launch: the second one leaves nothing
    return report.findings


@pytest.mark.parametrize(
    "body, grid, block, others",
    [
        (BY_BLOCK + IN_TURN, 2, 1, "block (1,0,0) thread (0,0,0)"),
        second(BY_BLOCK + BY_EXCHANGE, 5, 1, "block (1,0,0) thread (0,0,0)"),
        second(BY_THREAD + IN_TURN, 1, 64, "block (0,0,0) thread (1,0,0)"),
    ],
)
def test_locks_in_opposite_orders(body, grid, block, others):
    (finding,) = findings(body, grid, block)
    assert (finding.kind, finding.block, finding.thread) == ("deadlock", (0, 0, 0), (0, 0, 0))
    numbers = [int(n) for n in re.findall(r"\d", others)]
    assert [*finding.other_block, *finding.other_thread] == numbers
    assert f"holds the lock locks[0] and takes locks[1], while {others} may" in finding.message
    text = f"{LOCKS}{body}"
    marked = text[: text.index("// <-")].count("\n") + 1
    assert f"<source>:{marked}: " in finding.message


@pytest.mark.second
def test_a_ring_of_locks():
    (finding,) = findings(RING, 5)
    assert finding.kind == "deadlock" and "5 of them may wait" in finding.message


@pytest.mark.parametrize(
    "body, grid, block",
    [
        (BY_BLOCK + BY_INDEX, 5, 1),
        second(BY_THREAD + BY_INDEX, 1, 64),
        second(BY_BLOCK + UNDER_A_THIRD, 5, 1),
        (BY_BLOCK + GIVES_WAY, 5, 1),
        second(BY_BLOCK + GIVES_UP, 5, 1),
        second(BY_BLOCK + IN_TURN, 1, 1),  # one thread alone
        second(AFTER_A_BARRIER.replace("BARRIER", "__syncthreads();"), 1, 2),
        second(AFTER_A_BARRIER.replace("BARRIER", "__syncwarp(3);"), 1, 2),
        # Two flags of a table that are claimed, and cleared by the one who claimed them.
        second(
            "if (atomicExch(locks + blockIdx.x, 1) == 0) atomicExch(locks + blockIdx.x, 0);", 5, 1
        ),
        second(
            f"{BY_BLOCK}atomicCAS(locks + from, 0, 1);\natomicCAS(locks + to, 0, 2);\n"
            "locks[from] = locks[to] = 0;",
            1,
            1,
        ),
    ],
)
def test_locks_that_cannot_wait_for_each_other(body, grid, block):
    assert not findings(body, grid, block)


@pytest.mark.second
def test_a_barrier_that_is_not_there_keeps_nobody_apart():
    (finding,) = findings(AFTER_A_BARRIER.replace("BARRIER", ""), 1, 2)
    assert finding.kind == "deadlock"


@pytest.mark.second
def test_locks_of_the_module_are_as_the_launch_left_them():
    text = """
__device__ int locks[2], taken;
__global__ void k(int* out)
{
    int first = blockIdx.x, second = 1 - first;
    while (atomicCAS(locks + first, 0, 1)) { }
    while (atomicCAS(locks + second, 0, 1)) { }
    out[first] = atomicAdd(&taken, 1);
    atomicExch(locks + second, 0);
    atomicExch(locks + first, 0);
}"""
    for first in (0, 2):
        out = np.zeros(2, np.int32)
        (finding,) = kernel(text).check(2, 1, out).findings
        assert finding.kind == "deadlock" and "locks[0] and takes locks[1]" in finding.message
        assert out.tolist() == [first, first + 1]
