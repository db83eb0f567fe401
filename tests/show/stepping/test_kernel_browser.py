"""The page of a launch as a browser draws it: its numbers, read back from the document."""

import math

import numpy as np
import pytest

from tests.browser import dom, measured, with_script
from tests.cuda.test_gallery import GALLERY, Case
from tests.show.stepping.pages import data_of
from tests.show.stepping.test_kernel_page import SHIFT, TREE
from tinygraph.cuda import Kernel, Out
from tinygraph.cuda.emulator.record import Wish

pytestmark = pytest.mark.second


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """The page of a sum in shared memory, its data, and the sums."""
    path = tmp_path_factory.mktemp("tree") / "tree.html"
    x, y = np.arange(100, dtype=np.float32), np.empty(2, np.float32)
    Kernel(TREE, "block_sum").steps(path, 2, 64, x, Out(y), 100)
    return path, data_of(path), x, y


def steps_of(data, block=0, run=0):
    return data["runs"][run]["blocks"][block]["steps"]


def find(data, **wanted):
    """The address of the first step of block 0 that has these values, and the step."""
    for number, step in enumerate(steps_of(data), 1):
        if all(step.get(name) == value for name, value in wanted.items()):
            return f"step={number}", step
    raise AssertionError(wanted)


def values(section):
    """The numbers of the cells of an array, by element."""
    cells = [e for e in section.all("span") if "data-index" in e.attributes]
    return {
        int(e.attributes["data-index"]): float(e.attributes["data-value"])
        for e in cells
        if "data-value" in e.attributes
    }


def memory(document, name):
    """The section of one array."""
    (found,) = [
        section
        for section in document.all("section", "memory")
        if section.one("h3").text.split(":")[0].split()[1] == name
    ]
    return found


def test_a_conflict_is_said_and_drawn_above_its_banks(tree):
    path, data, _, _ = tree
    address, step = find(data, kind="read", line=10, cost=[2, 1])
    document = dom(path, address)
    words = "Bank conflict: the request takes 2 turns, 1 would do."
    assert document.one("p", "cost").text == words and "hot" in document.one("p", "cost").classes
    assert words in document.one(id="said").text
    heads = memory(document, "s").all("em")
    assert len(heads) == 32
    assert [e.attributes.get("data-depth") for e in heads] == ["2", None] * 16
    touched = [e for e in memory(document, "s").all("span") if "r" in e.classes]
    wanted = {offset // 4 for offset in step["offsets"]}
    assert {int(e.attributes["data-index"]) for e in touched} == wanted
    now = document.one("ol", id="code").one("li", "now")
    assert now.one("i").text == "10" and "s[at] += s[at + step]" in now.text


def test_lanes_have_what_they_read(tree):
    path, data, _, _ = tree
    address, step = find(data, kind="read", line=5)
    document = dom(path, address)
    (row,) = document.all("div", "warp", data_name="gets")
    shown = [float(e.attributes["data-value"]) for e in row.all("u") if "none" not in e.classes]
    assert shown == step["values"] == list(range(32))
    (row,) = document.all("div", "warp", data_name="i")
    assert [int(e.attributes["data-value"]) for e in row.all("u")] == list(range(32))
    assert document.one("code", data_name="n").attributes["data-value"] == "100"
    assert [e.classes for e in memory(document, "x").all("div", "sector")][:5] == [
        *[["sector", "moved"]] * 4,
        ["sector"],
    ]


@pytest.mark.parametrize("block", [0, 1])
def test_the_last_step_shows_what_the_launch_has_left(tree, block):
    path, _, x, y = tree
    document = dom(path, f"step=99999&block={block}")
    held = values(memory(document, "y"))
    assert held[block] == y[block] and set(held) == {0, 1}
    assert values(memory(document, "x")) == dict(enumerate(x.tolist()))
    assert values(memory(document, "s"))[0] == y[block]
    assert all("left" in e.classes or "write" in e.classes for e in lanes_of(document))


def lanes_of(document):
    return document.one("section", "warps").all("b")


def test_a_gate_is_closed_until_all_threads_have_come(tree):
    path, data, _, _ = tree
    address, _ = find(data, kind="barrier", warp=1)
    document = dom(path, address)
    assert "64 of 64 threads wait" in document.one("section", "warps").one("h3").text
    assert len(document.all("i", "closed")) == 2
    assert [e.classes[0] for e in lanes_of(document)] == ["waits"] * 32 + ["barrier"] * 32
    address, _ = find(data, kind="open")
    document = dom(path, address)
    assert len(document.all("i", "open")) == 2 and "the barrier opens" in document.one("h2").text


@pytest.mark.parametrize(("width", "rows"), [(1280, 1), (1024, 1), (900, 1), (400, 2)])
def test_all_lanes_and_banks_are_seen_without_a_scroll(tree, width, rows):
    path, data, _, _ = tree
    address, _ = find(data, kind="read", line=10)
    code = """(() => {
        const all = what => [...document.querySelectorAll(what)];
        const rows = what => new Set(all(what).map(e => e.offsetTop)).size;
        return {
            over: all("#panel .scroll, html").map(e => e.scrollWidth - e.clientWidth),
            lanes: rows(".warps .warp.now b"),
            heads: rows(".banks em"),
            cut: all(".warp u").filter(e => e.scrollWidth > e.clientWidth).length,
        };
    })()"""
    found = measured(path, address, width, code)
    assert found == {"over": [0] * len(found["over"]), "lanes": rows, "heads": rows, "cut": 0}
    assert len(found["over"]) == 4


def test_a_race_shows_both_threads_both_lines_and_both_outcomes(tmp_path):
    path = tmp_path / "shift.html"
    Kernel(SHIFT, "shift").steps(path, 1, 64, np.arange(65, dtype=np.float32))
    data = data_of(path)
    for order in (0, 1):
        ((_, at),) = data["runs"][order]["blocks"][0]["jumps"]
        document = dom(path, f"step={at + 1}&order={order}")
        (found,) = data["runs"][order]["findings"]
        culprit, other = document.one("b", "culprit"), document.one("b", "other")
        threads = [
            32 * (k // 32) + k % 32
            for k, e in enumerate(lanes_of(document))
            if e in (culprit, other)
        ]
        assert sorted(threads) == sorted([found["thread"], found["otherThread"]])
        assert [row.one("i").text for row in document.all("li", "wrong")] == ["3", "4"]
        assert document.one("section", "found").one("pre").text == found["message"]
        rows = document.one("section", "outcome").all("tr")
        assert [cell.text for cell in rows[1].all("td")] == ["x[0]", "1", "64"]
        assert document.one("button", "on").text == data["runs"][order]["order"]


ADDED_WITHOUT_AN_ATOMIC = (
    """
__global__ void total(const float* x, float* sum) {
    if (threadIdx.x == 0)
        sum[0] += x[blockIdx.x];
}
"""
    + "//\n" * 60
    + """
__global__ void far_below(float* y) {
    y[threadIdx.x] = 1.0f;
}
"""
)


def test_of_a_race_between_blocks_the_other_access_is_a_click_away(tmp_path):
    path = tmp_path / "total.html"
    x, y = np.arange(1, 4, dtype=np.float32), np.zeros(1, np.float32)
    Kernel(ADDED_WITHOUT_AN_ATOMIC, "total").steps(path, 3, 32, x, y)
    data = data_of(path)
    ((_, at),) = data["runs"][0]["blocks"][1]["jumps"]
    (found,) = data["runs"][0]["findings"]
    assert found["otherAt"] == [0, 0] and steps_of(data, 1)[at]["kind"] == "read"
    click = 'document.querySelector(".found button").dispatchEvent(new MouseEvent("click"));'
    click += 'document.body.dataset.block = document.querySelector("select").value;'
    document = dom(with_script(path, click), f"step={at + 1}&block=1")
    assert document.one("body").attributes["data-block"] == "0"
    to = int(document.one("html").attributes["data-step"]) - 1
    there = steps_of(data, 0)[to]
    assert (there["kind"], there["line"], there["offsets"]) == ("write", 4, [0])


def test_a_mistake_of_another_block_is_a_click_away(tmp_path):
    source = """
__global__ void shift(float* x) {
    x[blockIdx.x * 32 + threadIdx.x] += 1.0f;
}
"""
    path = tmp_path / "tail.html"
    Kernel(source, "shift").steps(path, 3, 32, np.zeros(70, np.float32))
    data = data_of(path)
    ((_, at),) = data["runs"][0]["blocks"][2]["jumps"]
    document = dom(path, "step=1")
    assert document.one("p", "jumps").text == f"out-of-bounds in block 2, step {at + 1}"
    assert not document.all("section", "found")
    click = 'document.querySelector(".jumps button").dispatchEvent(new MouseEvent("click"));'
    document = dom(with_script(path, click), "step=1")
    assert document.one("html").attributes["data-step"] == str(at + 1)
    assert document.one("section", "found").one("h3").text == "out-of-bounds"
    assert "x[70]" in document.one("section", "found").one("pre").text
    assert not document.all("p", "jumps")
    for block in (0, 2):
        named = dom(path, f"block={block}&step=mistake")
        assert named.one("html").attributes["data-step"] == str(at + 1)
        assert "x[70]" in named.one("section", "found").one("pre").text


def test_what_nobody_has_written_is_said_when_the_launch_is_over(tmp_path):
    source = """
__global__ void fill(float* x, int n) {
    if (threadIdx.x < n - 1) x[threadIdx.x] = 1.0f;
}
"""
    path = tmp_path / "fill.html"
    Kernel(source, "fill").steps(path, 1, 32, Out(np.zeros(20, np.float32)), 20)
    (found,) = data_of(path)["runs"][0]["findings"]
    assert (found["kind"], found["block"]) == ("unwritten-output", None)
    document = dom(path, "step=1")
    assert document.one("p", "jumps").text == "unwritten-output at the end"
    assert not document.all("section", "found")
    click = 'document.querySelector(".jumps button").dispatchEvent(new MouseEvent("click"));'
    document = dom(with_script(path, click), "step=1")
    assert document.one("section", "found").one("pre").text == found["message"]
    assert not document.all("p", "jumps") and not document.all("b", "culprit")
    steps = len(steps_of(data_of(path)))
    assert document.one("html").attributes["data-step"] == str(steps)
    assert found["message"] in document.one(id="said").text


def test_of_several_files_each_line_of_the_table_says_which(tmp_path):
    half = "__device__ float half_of(const float* x) { return *x / 2; }\n"
    (tmp_path / "half.cuh").write_text(half)
    source = tmp_path / "halve.cu"
    source.write_text(
        '#include "half.cuh"\n'
        "__global__ void halve(float* x) {\n"
        "    x[threadIdx.x] = half_of(x + threadIdx.x);\n"
        "}\n"
    )
    path = tmp_path / "halve.html"
    Kernel(source, "halve").steps(path, 1, 32, np.ones(32, np.float32))
    rows = dom(path, "step=999").one("tbody", id="totals").all("tr")
    assert {row.all("td")[0].text for row in rows} == {"half.cuh:1", "halve.cu:3"}


def test_the_current_line_is_in_sight_on_a_narrow_screen(tmp_path):
    path = tmp_path / "far.html"
    Kernel(ADDED_WITHOUT_AN_ATOMIC, "far_below").steps(path, 1, 32, np.zeros(32, np.float32))
    code = """(() => {
        const [box, row] = ["#code", "#code .now"].map(what =>
            document.querySelector(what).getBoundingClientRect());
        return [row.top - box.top, box.bottom - row.bottom];
    })()"""
    assert min(measured(path, "step=1", 400, code)) >= 0


def test_threads_that_are_not_recorded_any_further_have_not_been_stopped(tmp_path):
    path = tmp_path / "tree.html"
    x, y = np.ones(64, np.float32), np.empty(1, np.float32)
    Kernel(TREE, "block_sum").steps(path, 1, 64, x, Out(y), 64, limit=300)
    document = dom(path, "step=99999")
    lost = [e for e in lanes_of(document) if "lost" in e.classes]
    words = document.one("p", "soft").text
    assert lost and "not recorded any further" in words and "stopped" not in words
    assert "a larger limit" in document.one(id="notes").text


def test_an_access_that_is_stopped_is_seen_at_the_end_of_its_array(tmp_path):
    path = tmp_path / "vote.html"
    source = """
__global__ void vote(const int* x, unsigned* y) {
    unsigned all = __ballot_sync(0xffffffffu, threadIdx.x % 2);
    y[threadIdx.x] = all + x[threadIdx.x + 990];
}
"""
    x, y = np.arange(1000, dtype=np.int32), np.zeros(32, np.uint32)
    Kernel(source, "vote").steps(path, 1, 32, x, y)
    data = data_of(path)
    address, step = find(data, kind="stop")
    shown = memory(dom(path, address), "x")
    assert [e.attributes["data-sector"] for e in shown.all("div", "sector")] == ["124"]
    assert min(step["offsets"]) == 4000 and "x[1000]" in shown.one("p", "outside").text
    address, _ = find(data, kind="exchange")
    folded = dom(path, address).one("code", data_name="gets")  # a mask, which no cell can hold
    assert folded.attributes["data-value"] == "0xaaaaaaaa"


@pytest.mark.parametrize(
    "name",
    ["transpose_padded", "gemm_tiled", "argmax_rows", "scan_blelloch", "race_reverse_no_barrier"],
)
def test_totals_on_the_page_are_the_profiles(name, tmp_path):
    """The table of the last step, read from the document, over all blocks."""
    (path,) = GALLERY.glob(f"*/{name}.cu")
    launch, kernel, arguments = Case(path).launch()
    given = tuple(arguments.values())
    ready = kernel._to_check(launch.grid, launch.block, given, launch.shared)
    counted = kernel._report(ready, True, Wish()).lines  # of the build that is traced
    wanted: dict[str, list[int]] = {}
    for c in counted:
        took, least = (c.sectors, c.least_sectors)
        if c.space == "shared":
            took, least = c.wavefronts, c.least_wavefronts
        row = wanted.setdefault(f"{c.line} {c.space} {c.access} {c.size}", [0, 0, 0])
        row[:] = [a + b for a, b in zip(row, (c.requests, took, least), strict=True)]
    page = tmp_path / "page.html"
    grid = math.prod(launch.grid)
    blocks = [
        (n % launch.grid[0], n // launch.grid[0]) if len(launch.grid) > 1 else n
        for n in range(grid)
    ]
    _, kernel, arguments = Case(path).launch()
    kernel.steps(
        page, launch.grid, launch.block, *arguments.values(), shared=launch.shared, blocks=blocks
    )
    found: dict[str, list[int]] = {}
    for block in range(grid):
        for line in dom(page, f"step=99999&block={block}").one("tbody", id="totals").all("tr"):
            row = found.setdefault(line.attributes["data-key"], [0, 0, 0])
            cells = [int(cell.text.split()[0]) for cell in line.all("td")[3:]]
            row[:] = [a + b for a, b in zip(row, cells, strict=True)]
    assert found == wanted


EVERY_KIND = [
    *["deadlock_syncwarp_and_barrier", "divergence_early_return", "misaligned_float4_plus_one"],
    *["oob_swapped_2d", "race_double_buffer", "readonly_cast_away_const", "timeout_stride_zero"],
    *["uninitialized_struct_member", "unwritten_wrong_stride", "warp_stale_mask"],
    *["box_filter_bytes", "welford_struct_double", "vector_float4_with_tail", "block_3d_index"],
]


@pytest.mark.second
@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", EVERY_KIND)
def test_first_middle_and_last_step_are_drawn_without_an_error(name, tmp_path, monkeypatch):
    """`dom` fails where the script or the policy has something to say on the console."""
    monkeypatch.setenv("TINYGRAPH_KERNEL_TIMEOUT", "0.5")
    (path,) = GALLERY.glob(f"*/{name}.cu")
    launch, kernel, arguments = Case(path).launch()
    page = tmp_path / "page.html"
    given = {"shared": launch.shared, "limit": 20_000}
    kernel.steps(page, launch.grid, launch.block, *arguments.values(), **given)
    data = data_of(page)
    last = len(data["runs"][0]["blocks"]) - 1
    block, steps = data["runs"][0]["blocks"][last]["number"], steps_of(data, last)
    for number in sorted({1, len(steps) // 2 + 1, len(steps)}):
        document = dom(page, f"step={number}&block={block}")
        step = steps[number - 1]
        assert document.one(id="where").text == f"step {number} of {len(steps)}"
        assert f"Line {step['line']}" in document.one("h2").text
        sections = [s.one("h3").text for s in document.all("section", "memory")]
        assert len(sections) == sum(array["used"] for array in data["arrays"])
