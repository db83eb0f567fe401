"""Every guard, barrier and shared array of every kernel broken in turn: the checker must see it.

`mutants.py` makes the mutants, `launches*.py` tells how each kernel is launched, `mutation_run.py`
tries a mutant in a process of its own, and `ledger.py` remembers how it ended: new mutants and a
sample of the others are tried in the first tier of the tests, a larger one in the second, all of
them by `make ledger ARGS=--all`.  What the checker does not see stands in `uncaught_mutants/`, one
file for each .cu and .cuh; everything else must end in a finding.

The sections of such a file

    numbers     no access is invalid, but results differ from numpy's
    harmless    nothing changes but speed or rounding: the reason is the proof
    unreached   a difference that no launch here can show
    refused     what it makes of the source does not compile
    hole        the checker should have seen it, and does not

An entry is a mutant as `test_mutant` prints it; one that matches nothing fails.  A new kernel needs
launches that reach every line of it, which the problems of an op's own tests give where
`launches*.py` has none.  Of such a kernel, a broken condition may show in numbers alone without an
entry; whatever nobody notices needs one.  `-s` prints how many mutants were tried.
"""

import json
import os
import re
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.cuda import ledger
from tests.cuda.launch import Launch
from tests.cuda.launches import families, launches_of, own_families
from tests.cuda.mutants import mutants
from tests.cuda.mutation_run import (
    CHECKER,
    CRASHED,
    NUMBERS,
    ORIGINAL,
    REFUSED,
    SURVIVED,
    Outcome,
    Sandbox,
    all_mutants,
    kernels_without_launch,
    mutants_to_try,
    mutated_files,
    to_try,
)
from tinygraph.cuda import Kernel

TABLE = Path(__file__).parent / "uncaught_mutants"

MUTANTS = mutants_to_try()
TO_TRY = to_try()  # with the originals
PLAN = ledger.plan(TO_TRY)
# How a mutant of each section of the table must end.
SECTIONS = {
    "numbers": NUMBERS,
    "harmless": SURVIVED,
    "unreached": SURVIVED,
    "refused": REFUSED,
    "hole": SURVIVED,
}


@cache
def table():
    """The section and the reason of each mutant that the checker does not see."""
    entries = {}
    for path in sorted(TABLE.glob("*.toml")):
        for section, groups in tomllib.loads(path.read_text()).items():
            for group in groups:
                for mutant in group["mutants"]:
                    assert mutant.startswith(f"{path.stem}:"), f"not in {path.name}: {mutant}"
                    assert mutant not in entries, f"twice in the table: {mutant}"
                    entries[mutant] = section, group["reason"]
    return entries


def ends_without_entry(mutant):
    """How a mutant may end that is not in the table."""
    a_condition = mutant.kind in ("guard", "exit", "clamp")
    from_contracts = mutant.file in families().keys() - own_families().keys()
    return {CHECKER, NUMBERS} if a_condition and from_contracts else {CHECKER}


@pytest.fixture(scope="session")
def outcomes(tmp_path_factory):
    """The folder in which all processes of a test run note what became of the mutants."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder /= "mutation-outcomes"
    folder.mkdir(exist_ok=True)
    return folder


def complaint(mutant, how):
    """What is wrong with the outcome of a mutant; "" if it is as it must be."""
    if mutant.kind == ORIGINAL:
        return "" if how == SURVIVED else "the kernels of this file are not clean and right"
    section, _ = table().get(str(mutant), (None, ""))
    if section is not None:
        return "" if how == SECTIONS[section] else f"is {section} in {TABLE.name}"
    if how in ends_without_entry(mutant):
        return ""
    return (
        "No finding. If the change is harmless, or only numbers can tell it, put the first line "
        f"into {TABLE.name}/{mutant.file}.toml with the reason."
    )


def judge(name, outcome, known):
    """Hold an outcome against the table, and against what is known of it."""
    mutant = TO_TRY[name]
    wrong = complaint(mutant, outcome.how)
    assert not wrong, f"{mutant}\n{outcome}\n{wrong}"
    assert known.get(name, outcome.how) == outcome.how, (
        f"{mutant}\n{outcome}\nThe ledger says: {known[name]}. Way out: make ledger"
    )


def try_mutant(name, sandbox, outcomes):
    outcome, mutant = sandbox.run(name), TO_TRY[name]
    section, _ = table().get(str(mutant), (None, ""))
    (outcomes / f"{name.replace(':', '-')}.json").write_text(
        json.dumps([mutant.kind, outcome.how, section or "", outcome.what])
    )
    judge(name, outcome, PLAN.known)


@pytest.mark.parametrize("name", PLAN.now)
def test_mutant(name, sandbox, outcomes):
    try_mutant(name, sandbox, outcomes)


def later_marks(name):
    """Those of a file in one process; of entries by another emulator or compiler one in 16."""
    group = pytest.mark.xdist_group(TO_TRY[name].file)
    known_by_others = name in PLAN.known and TO_TRY[name].file in PLAN.other_tools
    return [group, pytest.mark.sweep(16)] if known_by_others else [group]


@pytest.mark.second
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=later_marks(name)) for name in PLAN.later],
)
def test_mutant_again(name, sandbox, outcomes):
    """Those that the first tier takes from the ledger, or has no time for."""
    try_mutant(name, sandbox, outcomes)


def test_what_the_ledger_says(record_property):
    record_property("mutants", str(PLAN))  # conftest.py prints it at the end
    wrong = [
        f"{TO_TRY[name]}\n  {how}: {complaint(TO_TRY[name], how)}"
        for name, how in PLAN.known.items()
        if complaint(TO_TRY[name], how)
    ]
    assert not wrong, "\n".join(wrong)


def test_table_has_no_dead_entries():
    dead = table().keys() - {str(mutant) for mutant in MUTANTS.values()}
    assert not dead, f"no such mutants (any more): {sorted(dead)}"


def test_table_gives_a_reason_for_each():
    entries = table()
    assert {section for section, _ in entries.values()} <= set(SECTIONS)
    assert all(len(reason) > 20 for _, reason in entries.values())


def test_every_file_has_launches():
    """From an op's own tests, or in launches_*.py."""
    files = {path.name for path in mutated_files() if path.suffix == ".cu"}
    new = files - set(families())
    assert not new, f"no op's tests launch them, nor launches_*.py: {sorted(new)}"


@pytest.mark.second  # makes the launches of all files
def test_every_kernel_is_launched():
    assert not kernels_without_launch()


def test_every_barrier_and_shared_array_has_a_mutant():
    """Counted in another way than mutants are made."""
    for path in mutated_files():
        code = re.sub(r"//.*|/\*(.|\n)*?\*/", "", path.read_text())
        code = re.sub(r"^#ifdef TINYGRAPH_EMULATOR(.|\n)*?^#endif", "", code, flags=re.M)
        made = Counter(m.kind for m in all_mutants().values() if m.file == path.name)
        assert made["barrier"] == len(re.findall(r"__sync(threads|warp)\w*\(", code))
        assert made["shared"] >= len(re.findall(r"__shared__[^;\[]*((?:\[[^\]]+\])+)", code))
        exits = re.findall(r"\bif \([^;{]*\)\s*(?:return|continue|break)\b", code)
        assert made["exit"] >= len(exits)


# ---- the machinery ------------------------------------------------------------------------------


SMALL = """
__global__ void k(const float* x, float* y, int n, bool up) // if (n) return;
{
    __shared__ float a[4][8], b[3];
    const int i = min(threadIdx.x, 7);
    if (i >= n || up) return;
    for (int j = 0; j < n; ++j) a[0][j] = j < 3 && !up ? x[j] : 0;
    __syncthreads();
    if (up) y[i] = a[0][i]; else y[i] = b[0];
    const bool last = i == n - 1;
}
"""


def test_mutants_of_a_small_kernel():
    made = mutants("k.cu", SMALL)
    assert {m.function for m in made} == {"k"}
    assert [(m.kind, m.ordinal, m.change) for m in made] == [
        ("shared", 1, "a[4][8] -> a[(4) - 1][8]"),
        ("shared", 2, "b[3] -> b[(3) - 1]"),
        ("shared", 3, "[4][8] -> axis 1 of 8 - 1"),
        ("clamp", 1, "min(threadIdx.x, 7) -> (threadIdx.x)"),
        ("clamp", 2, "min(threadIdx.x, 7) -> (7)"),
        ("exit", 1, "i >= n -> false"),
        ("exit", 2, "up -> false"),
        ("guard", 1, "j < n -> true"),
        ("guard", 2, "j < 3 -> true"),
        ("guard", 3, "j < 3 -> false"),
        ("guard", 4, "!up -> true"),
        ("guard", 5, "!up -> false"),
        ("barrier", 1, "__syncthreads() -> nothing"),
        ("guard", 6, "up -> true"),
        ("guard", 7, "up -> false"),
        ("guard", 8, "i == n - 1 -> true"),
    ]
    for mutant in made:
        assert mutant.source.count("\n") == SMALL.count("\n")
        assert mutant.source != SMALL
        changed = [
            (before, after)
            for before, after in zip(SMALL.splitlines(), mutant.source.splitlines(), strict=True)
            if before != after
        ]
        assert len(changed) == 1 and changed[0][0].strip() == mutant.line


def test_a_body_of_the_emulator_is_left_alone():
    twice = """
#ifdef TINYGRAPH_EMULATOR
inline void f(int i) { if (i) return; }
#if 1
inline void g(int i) { if (i) return; }
#endif
#else
__device__ void f(int i) { if (i) return; }
#endif
__global__ void k(int i) { if (i) return; }
"""
    assert [m.name for m in mutants("k.cu", twice)] == ["k.cu:k:exit-1"]


def test_shrunk_arrays_that_are_passed_by_reference_are_shrunk_everywhere():
    text = """
__device__ void load(float (&tile)[2][5]) { tile[0][0] = 0; }
__global__ void k() { __shared__ float p[2][5], q[2][5]; load(p); load(q); }
"""
    inner = [m for m in mutants("k.cu", text) if "axis" in m.change]
    assert len(inner) == 1
    assert inner[0].source == text.replace("[2][5]", "[2][(5) - 1]")


def _leave(name):
    """Work that ends its process, for one name."""
    if name == "dies":
        os._exit(1)
    return Outcome(CHECKER, name)


@pytest.mark.second  # each process imports all that launches
def test_sandbox_survives_what_it_runs():
    sandbox = Sandbox(_leave)
    try:
        assert sandbox.run("lives") == Outcome(CHECKER, "lives")
        assert sandbox.run("dies").how == CRASHED
        assert sandbox.run("lives again") == Outcome(CHECKER, "lives again")
    finally:
        sandbox.close()


def test_outputs_of_a_launch_hold_nothing_of_the_answer():
    """A kernel that does nothing is found out: by the checker, and by its numbers."""
    launch = next(iter(launches_of("relu.cu").values()))[0]
    text = """struct Relu {};
    template <typename T, typename Function>
    __global__ void unary_forward(const T* x, T* y, long long n, T a, T b) {}"""
    idle = Launch("", launch.name, {}, launch.grid, launch.arguments)
    report, differences = idle.check(Kernel(text, launch.name))
    assert {finding.kind for finding in report.findings} == {"unwritten-output"}
    assert len(differences) == 1


def test_counts(outcomes):
    """Last, for `-s`: what became of the mutants that this test run has tried."""
    tried = [json.loads(path.read_text()) for path in outcomes.iterdir()]
    print(f"\n{len(tried)} of {len(TO_TRY)} mutants and originals tried")
    for kind in ("barrier", "exit", "guard", "clamp", "shared"):
        ends = Counter(
            section if how == SURVIVED else how for k, how, section, _ in tried if k == kind
        )
        print(
            f"  {kind:8s} {sum(ends.values()):4d}: "
            + ", ".join(f"{count} {how or 'survived'}" for how, count in ends.most_common())
        )
    findings = Counter(what.split(":")[0] for _, how, _, what in tried if how == CHECKER)
    print("  findings: " + ", ".join(f"{count} {kind}" for kind, count in findings.most_common()))
    assert len(tried) <= len(TO_TRY)
    made = Counter(mutant.kind for mutant in MUTANTS.values())
    assert made["barrier"] >= 9 and made["shared"] >= 18 and made["guard"] >= 190
