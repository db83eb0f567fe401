"""The page of a launch: what it says of small kernels, worked by hand."""

import numpy as np
import pytest

from tests.show.stepping.pages import data_of
from tinygraph.base.errors import ArgumentError, KernelLaunchError
from tinygraph.cli import main
from tinygraph.cuda import Kernel, Out

TREE = """
__global__ void block_sum(const float* x, float* y, int n) {
    __shared__ float s[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int step = 1; step < blockDim.x; step *= 2) {
        int at = 2 * step * threadIdx.x;
        if (at + step < blockDim.x)
            s[at] += s[at + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = s[0];
}
"""
SHIFT = """
__global__ void shift(float* x) {
    float right = x[threadIdx.x + 1];
    x[threadIdx.x] = right;
}
"""


def lanes(mask):
    return [lane for lane in range(32) if mask >> lane & 1]


def stepped(tmp_path, source, name, grid, block, *args, **options):
    return data_of(Kernel(source, name).steps(tmp_path / "p.html", grid, block, *args, **options))


def accesses(data, block=0, run=0):
    """(kind, array, line, warp, lanes, cost) of each request of a block."""
    return [
        (
            step["kind"],
            data["arrays"][step["array"]]["name"],
            step["line"],
            step["warp"],
            len(lanes(step["lanes"])),
            tuple(step["cost"]),
        )
        for step in data["runs"][run]["blocks"][block]["steps"]
        if "cost" in step
    ]


def left_in(data, name, block=-1, run=0):
    """What an array holds after the last step of a block, by element."""
    number = next(k for k, array in enumerate(data["arrays"]) if array["name"] == name)
    shown = data["runs"][run]["blocks"][block]
    cells = {
        begin + k: value for begin, row in shown["initial"][number] for k, value in enumerate(row)
    }
    for step in shown["steps"]:
        if step.get("array") == number:
            cells |= dict(step.get("stored", []))
    return cells


def test_a_tree_in_shared_memory_has_the_conflicts_that_its_strides_make(tmp_path):
    x, y = np.arange(100, dtype=np.float32), np.empty(2, np.float32)
    data = stepped(tmp_path, TREE, "block_sum", 2, 64, x, Out(y), 100)
    assert y.tolist() == [x[:64].sum(), x[64:].sum()]
    for block in (0, 1):
        values = left_in(data, "s", block)
        assert values[0] == y[block] and left_in(data, "y", block)[block] == y[block]
    found = accesses(data, 1)
    warp = {0: 32, 1: 4}  # threads of block 1 that have an element of x
    assert found[:4] == [
        *[("read", "x", 5, 0, 32, (4, 4)), ("write", "s", 5, 0, 32, (1, 1))],
        *[("read", "x", 5, 1, warp[1], (1, 1)), ("write", "s", 5, 1, 32, (1, 1))],
    ]
    # Lane t wants word 2 * step * t of 32 banks: two of the lanes meet in one, until one is left.
    reads = [row for row in found if row[:3] == ("read", "s", 10)]
    of_first_warp = [row for row in reads if row[3] == 0]
    busy = [min(32, 32 // step) for step in (1, 2, 4, 8, 16, 32)]
    assert [row[4] for row in of_first_warp[::2]] == busy
    assert [row[5][0] for row in of_first_warp[::2]] == [2, 2, 2, 2, 2, 1]
    assert all(row[5][1] == 1 for row in reads)


def test_variables_of_the_lanes_are_those_of_the_line(tmp_path):
    x = np.ones(64, np.float32)
    data = stepped(tmp_path, TREE, "block_sum", 1, 64, x, np.empty(1, np.float32), 64)
    held, seen = {}, []
    for step in data["runs"][0]["blocks"][0]["steps"]:
        for number, changed, values in step.get("set", []):
            name = data["variables"][number][0]
            for lane, value in zip(lanes(changed), values, strict=True):
                held[name, 32 * step["warp"] + lane] = value
        if step["kind"] == "write" and step["line"] == 10:
            threads = [32 * step["warp"] + lane for lane in lanes(step["lanes"])]
            ats = [held["at", thread] for thread in threads]
            assert ats == [offset // 4 for offset in step["offsets"]]
            (stride,) = {held["step", thread] for thread in threads}
            assert ats == [2 * stride * thread for thread in threads]
            assert {held["n", thread] for thread in threads} == {64}
            seen.append(stride)
    assert sorted(set(seen)) == [1, 2, 4, 8, 16, 32]


def test_barriers_are_gates_that_all_threads_come_to(tmp_path):
    x = np.ones(64, np.float32)
    data = stepped(tmp_path, TREE, "block_sum", 1, 64, x, np.empty(1, np.float32), 64)
    (block,) = data["runs"][0]["blocks"]
    gates = [step for step in block["steps"] if step["kind"] == "open"]
    assert len(gates) == 7 and all(gate["come"] == 64 for gate in gates)
    epoch, waiting = 0, 0
    for step in block["steps"]:
        assert step["epoch"] == epoch
        if step["kind"] == "barrier":
            waiting += len(lanes(step["lanes"]))
        if step["kind"] == "open":
            assert waiting == 64
            epoch, waiting = epoch + 1, 0
    gone = sum(len(lanes(step.get("left", 0))) for step in block["steps"])
    assert gone == 64 and not any("lost" in step for step in block["steps"])


def test_lanes_that_take_no_part_in_a_branch_wait_behind_it(tmp_path):
    source = """
    __global__ void halves(float* x) {
        int t = threadIdx.x;
        if (t < 8)
            x[t] = 1;
        else
            x[t] = 2;
        x[t] += 1;
    }"""
    x = np.zeros(32, np.float32)
    data = stepped(tmp_path, source, "halves", 1, 32, x)
    assert [row[2:5] for row in accesses(data)] == [(5, 0, 8), (7, 0, 24), (8, 0, 32), (8, 0, 32)]
    assert x.tolist() == [2.0] * 8 + [3.0] * 24
    assert list(left_in(data, "x").values()) == x.tolist()


def test_a_race_is_shown_in_both_orders_with_both_threads(tmp_path):
    before = np.arange(65, dtype=np.float32)
    x = before.copy()
    data = stepped(tmp_path, SHIFT, "shift", 1, 64, x)
    assert x.tolist() == [*range(1, 65), 64]  # the caller's array: threads in order
    assert [run["order"] for run in data["runs"]] == ["threads in order", "threads reversed"]
    assert list(left_in(data, "x", run=1).values()) == [64] * 65
    assert data["outcome"][0] == ["x[0]", 1, 64] and len(data["outcome"]) + data["more"] == 63
    for run in data["runs"]:
        (found,) = run["findings"]
        assert found["kind"] == "race" and found["array"] == "x"
        assert abs(found["thread"] - found["otherThread"]) == 1
        assert {found["place"]["line"], found["other"]["line"]} == {3, 4}
        (block,) = run["blocks"]
        ((_, at),) = block["jumps"]
        step = block["steps"][at]
        assert step["findings"] == [0] and step["line"] == found["place"]["line"]
        assert found["thread"] - 32 * step["warp"] in lanes(step["lanes"])
    odd = [len(s["odd"]) for s in data["runs"][1]["blocks"][0]["steps"] if "odd" in s]
    # Lane 31 of each warp has read what the page shows, the others what a later lane wrote first.
    assert odd == [31, 31]


def test_where_the_other_order_leaves_the_same_it_is_not_shown(tmp_path):
    x = np.ones(64, np.float32)
    data = stepped(tmp_path, TREE, "block_sum", 1, 64, x, np.empty(1, np.float32), 64)
    assert len(data["runs"]) == 1 and data["outcome"] == []
    assert "the same bytes" in data["notes"][0]


def test_an_access_out_of_bounds_is_the_last_step(tmp_path):
    source = """
    __global__ void copy(const float* x, float* y) {
        y[threadIdx.x] = x[threadIdx.x];
    }"""
    x, y = np.arange(40, dtype=np.float32), np.zeros(64, np.float32)
    data = stepped(tmp_path, source, "copy", 1, 64, x, y)
    (run,) = data["runs"]
    (block,) = run["blocks"]
    step = block["steps"][-1]
    assert step["kind"] == "stop" and (step["warp"], lanes(step["lanes"])) == (1, [*range(8, 32)])
    assert step["offsets"] == [4 * index for index in range(40, 64)]
    assert block["jumps"] == [[0, len(block["steps"]) - 1]] and block["absent"] == [0, 0]
    assert lanes(step["lost"]) == lanes(step["lanes"])  # they have not left


def test_what_a_second_launch_finds_is_at_its_line(tmp_path):
    source = """
    __global__ void both(int* locks) {
        while (atomicCAS(&locks[blockIdx.x], 0, 1)) { }
        while (atomicCAS(&locks[1 - blockIdx.x], 0, 1)) { }
        atomicExch(&locks[1 - blockIdx.x], 0);
        atomicExch(&locks[blockIdx.x], 0);
    }"""
    data = stepped(tmp_path, source, "both", 2, 1, np.zeros(2, np.int32))
    (found,) = data["runs"][0]["findings"]
    block = data["runs"][0]["blocks"][0]
    ((_, at),) = block["jumps"]
    step = block["steps"][at]
    assert found["kind"] == "deadlock" and found["place"]["line"] == step["line"] == 4
    assert step["kind"] == "atomic"


def test_a_mistake_in_a_later_block_is_on_the_page(tmp_path):
    source = """
    __global__ void fill(float* x) { x[blockIdx.x * 32 + threadIdx.x] = 1; }"""
    data = stepped(tmp_path, source, "fill", 40, 32, np.zeros(39 * 32, np.float32))
    blocks = data["runs"][0]["blocks"]
    assert [block["number"] for block in blocks] == [*range(8), 39]
    assert blocks[-1]["jumps"] and blocks[-1]["notes"] and data["blocks"] == 40


def test_blocks_and_events_that_are_wanted(tmp_path):
    source = """
    __global__ void fill(float* x) { x[blockIdx.x * 32 + threadIdx.x] = 1; }"""
    x = np.zeros(4 * 32, np.float32)
    data = stepped(tmp_path, source, "fill", (2, 2), 32, x, blocks=[(1, 1)])
    (block,) = data["runs"][0]["blocks"]
    assert (block["number"], block["name"]) == (3, "1, 1")
    data = stepped(tmp_path, source, "fill", 4, 32, x, limit=50)
    assert "events are shown" in data["notes"][0]


@pytest.mark.parametrize(
    ("ctype", "values", "shown"),
    [
        ("float", [0.1, np.nan, -np.inf], [0.1, "nan", "-inf"]),
        ("double", [0.1, 1e300, 0.0], [0.1, 1e300, 0.0]),
        ("long long", [2**60, -5, 0], [str(2**60), -5, 0]),
        ("unsigned char", [255, 7, 0], [255, 7, 0]),
    ],
)
def test_values_are_those_of_the_arrays(tmp_path, ctype, values, shown):
    source = (
        f"__global__ void move(const {ctype}* x, {ctype}* y) {{ y[threadIdx.x] = x[threadIdx.x]; }}"
    )
    dtype = {"float": "f4", "double": "f8", "long long": "i8", "unsigned char": "u1"}[ctype]
    x = np.array(values, dtype)
    y = np.zeros_like(x)
    data = stepped(tmp_path, source, "move", 1, 3, x, y)
    assert list(left_in(data, "y").values()) == shown
    read = next(s for s in data["runs"][0]["blocks"][0]["steps"] if s["kind"] == "read")
    assert read["values"] == shown


def test_a_shuffle_shows_who_takes_from_whom(tmp_path):
    source = """
    __global__ void sum(const float* x, float* y) {
        float v = x[threadIdx.x];
        for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
        if (threadIdx.x == 0) *y = v;
    }"""
    x, y = np.arange(32, dtype=np.float32), np.zeros(1, np.float32)
    data = stepped(tmp_path, source, "sum", 1, 32, x, y)
    shuffles = [s for s in data["runs"][0]["blocks"][0]["steps"] if s["kind"] == "exchange"]
    assert len(shuffles) == 5 and all(s["lanes"] == 2**32 - 1 for s in shuffles)
    (gives, given), (source_of, lane), (gets, taken) = shuffles[0]["rows"]
    assert (gives, source_of, gets) == ("gives", "of lane", "gets")
    assert given == x.tolist() and lane[:16] == list(range(16, 32))
    assert taken[:16] == x[16:].tolist() and y[0] == x.sum()


def test_bad_paths_and_launches_are_named(tmp_path):
    kernel, x = Kernel(SHIFT, "shift"), np.zeros(65, np.float32)
    with pytest.raises(ArgumentError, match=r"Kernel\.steps: path: .*\.html"):
        kernel.steps(tmp_path / "page.svg", 1, 64, x)
    with pytest.raises(ArgumentError, match="a file in a folder that exists"):
        kernel.steps(tmp_path / "no" / "page.html", 1, 64, x)
    with pytest.raises(KernelLaunchError, match="blocks of the grid"):
        kernel.steps(tmp_path / "page.html", 1, 64, x, blocks=[7])


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shift.cu").write_text(SHIFT)
    return ["step-kernel", "shift.cu", "--grid", "1", "--block", "64"]


def test_the_command_writes_the_page(file, tmp_path, capsys):
    assert main([*file, "--arg", "x=arange(65)"]) == 0
    assert capsys.readouterr().out == "wrote steps-shift.html\n"
    assert data_of(tmp_path / "steps-shift.html")["kernel"] == "shift"
    assert main([*file, "--arg", "x=arange(65)", "--page", "a.html", "--at", "0"]) == 0
    assert (tmp_path / "a.html").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            [],
            "step-kernel: --arg: expected one for each parameter of shift(float* x), got missing x",
        ),
        (["--arg", "x=arang(65)"], "step-kernel: --arg x=arang(65): expected a value"),
        (["--arg", "x=arange(65)", "--kernel", "shaft"], "it has shift, got 'shaft'"),
        (["--arg", "x=arange(65)", "--at", "2"], "blocks of the grid"),
        (["--arg", "x=arange(65)", "--page", "no/a.html"], "make the folder no first"),
        (["--arg", "x=arange(65)", "--limit", "0"], "--limit: expected a whole number from 1"),
    ],
)
def test_bad_arguments_are_named(file, options, words, capsys):
    assert main([*file, *options]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and words in error and "Traceback" not in error


def test_a_missing_file_is_named(capsys):
    assert main(["step-kernel", "absent.cu", "--grid", "1", "--block", "1"]) == 2
    assert "'absent.cu': No such file" in capsys.readouterr().err


def test_a_launch_that_does_not_end_is_waited_for_once(tmp_path):
    source = """
__global__ void fill(float* y, int n, int stride) {
    for (int i = threadIdx.x; i < n; i += stride) y[i] = 1.0f;
}
"""
    y = np.zeros(40, np.float32)
    data = stepped(tmp_path, source, "fill", 1, 32, y, 40, 0, timeout=0.3, limit=500)
    (run,) = data["runs"]
    assert [found["kind"] for found in run["findings"]] == ["timeout"]
    assert not data["outcome"] and not any("the same bytes" in note for note in data["notes"])
