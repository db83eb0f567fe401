"""The ledger of mutants: an entry that is stale or wrong is noticed; see ledger.py."""

from collections import Counter

import pytest

from tests.cuda import ledger
from tests.cuda.mutants import mutants
from tests.cuda.mutation_run import CHECKER, NUMBERS, ORIGINAL, SURVIVED, included_by
from tests.cuda.test_mutations import MUTANTS, TO_TRY, complaint, judge, table
from tinygraph.cuda.reading import source
from tinygraph.cuda.reading.source import kernel_file

HEADER = "__device__ int twice(int i) { return i < 9 ? 2 * i : 0; }\n"
KERNEL = """#include "of_ledger.cuh"
__global__ void k(int* y, int n) { if (threadIdx.x < n) y[threadIdx.x] = twice(threadIdx.x); }
"""


@pytest.fixture
def small_tree(tmp_path, monkeypatch):
    """A folder of one kernel, its header and its test; call it for the digests of its mutants."""
    caches = [ledger.digest, ledger._surroundings, ledger._kernel, ledger._launching]

    def digests(**texts):
        for name, text in texts.items():
            (
                tmp_path / {"kernel": "of_ledger.cu", "header": "of_ledger.cuh"}.get(name, name)
            ).write_text(text)
        for cached in [*caches, included_by]:
            cached.cache_clear()
        files = ["of_ledger.cu", "of_ledger.cuh"]
        made = [m for file in files for m in mutants(file, (tmp_path / file).read_text())]
        return {m.name: ledger.digest(m) for m in made}

    monkeypatch.setattr(source, "FOLDERS", (tmp_path,))
    monkeypatch.setattr(ledger.launches, "families", lambda: {"of_ledger.cu": None})
    monkeypatch.setattr(
        ledger.launches, "written_in", lambda: {"of_ledger.cu": tmp_path / "work.py"}
    )
    digests(kernel=KERNEL, header=HEADER, **{"work.py": "SIZES = [3]\n"})
    yield digests
    for cached in [*caches, included_by]:
        cached.cache_clear()


@pytest.mark.second
@pytest.mark.parametrize(
    ("change", "stale"),
    [
        ({"kernel": KERNEL.replace("twice(threadIdx", "1 + twice(threadIdx")}, True),
        ({"header": HEADER.replace("2 * i", "3 * i")}, True),
        ({"header": HEADER.replace("i < 9", "i < 8")}, True),
        ({"work.py": "SIZES = [3, 4]\n"}, True),
        ({"kernel": "// A comment.\n\n" + KERNEL.replace("int n)", "int n)  // of all\n")}, False),
        ({"header": "/* More\n * words */\n" + HEADER}, False),
        ({"work.py": "# a comment\nSIZES = [3]\n"}, False),
    ],
)
def test_an_entry_is_stale_where_its_outcome_may_be_another(small_tree, change, stale):
    before = small_tree()
    after = small_tree(**change)
    assert len(before) == 3 and before.keys() == after.keys()
    assert len({*before.values(), *after.values()}) == (6 if stale else 3)


def two_mutants():
    """Two of one small file that the checker has to notice."""
    files = Counter(m.file for m in MUTANTS.values() if str(m) not in table())
    some = [file for file, count in files.items() if count > 1 and file.endswith(".cu")]
    file = min(some, key=lambda file: kernel_file(file).stat().st_size)
    of_file = {name: m for name, m in MUTANTS.items() if m.file == file and str(m) not in table()}
    return dict(list(of_file.items())[:2])


@pytest.mark.second
def test_pages_and_what_is_tried_now(tmp_path, monkeypatch):
    made = two_mutants()
    a, b = made
    file = made[a].file
    assert ledger.plan(made, tmp_path).known == {}  # no page yet
    ledger.write(file, {made[a]: CHECKER}, tmp_path)
    plan = ledger.plan(made, tmp_path)
    assert plan.known == {a: CHECKER} and plan.now == (b, a) and not plan.other_tools
    assert plan.later == ()
    monkeypatch.setattr(ledger, "MOST_NEW", 0)
    monkeypatch.setattr(ledger, "SAMPLE", 0)
    monkeypatch.setattr(ledger, "ONE_OF", 2**70)  # none that these tools have tried
    plan = ledger.plan(made, tmp_path)
    assert plan.now == () and plan.waiting == plan.later == (b,) and "1 NEW ONES WAIT" in str(plan)
    ledger.write(file, dict.fromkeys(made.values(), CHECKER), tmp_path)
    plan = ledger.plan(made, tmp_path)
    assert "WAIT" not in str(plan) and plan.later == ()
    monkeypatch.setattr(ledger, "ONE_OF", 1)  # every one
    assert ledger.plan(made, tmp_path).later == (a, b)
    monkeypatch.setattr(ledger, "ONE_OF", 2**70)
    monkeypatch.setattr(ledger, "tools", lambda: "another compiler")
    plan = ledger.plan(made, tmp_path)
    assert plan.other_tools == (file,) and {*plan.now} == {a, b}
    monkeypatch.setattr(ledger, "SAMPLE_OF_OTHER_TOOLS", 0)
    assert ledger.plan(made, tmp_path).later == (a, b)
    assert "another one than the ledger's" in str(plan)


@pytest.mark.second
def test_a_page_that_was_merged_badly_says_less(tmp_path):
    made = two_mutants()
    file = next(iter(made.values())).file
    ledger.write(file, dict.fromkeys(made.values(), CHECKER), tmp_path)
    page = tmp_path / f"{file}.txt"
    lines = page.read_text().splitlines()
    page.write_text("\n".join(["<<<<<<< ours", *lines, "======="]))
    plan = ledger.plan(made, tmp_path)
    assert len(plan.known) == 2 and plan.other_tools == (file,)


def test_a_wrong_entry_is_noticed(sandbox):
    """One that the table contradicts at once; one that it allows when the mutant is tried."""
    name, mutant = next(iter(two_mutants().items()))
    assert complaint(mutant, SURVIVED) and not complaint(mutant, CHECKER)
    outcome = sandbox.run(name)
    judge(name, outcome, {name: outcome.how})
    another = NUMBERS if outcome.how == CHECKER else CHECKER
    with pytest.raises(AssertionError, match=f"The ledger says: {another}"):
        judge(name, outcome, {name: another})


@pytest.mark.second
def test_an_original_that_is_wrong_is_noticed():
    original = next(mutant for mutant in TO_TRY.values() if mutant.kind == ORIGINAL)
    assert complaint(original, CHECKER) and complaint(original, NUMBERS)
    assert not complaint(original, SURVIVED)
