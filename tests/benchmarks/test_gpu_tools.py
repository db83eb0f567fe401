"""Verdicts of compute-sanitizer, counts of ncu and reports of pytest, read from their text."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import children
from benchmarks.gpu import (
    counts,
    gallery,
    ours,
    profile,
    profiler,
    safe,
    sanitizer,
    smoke,
    suite,
    verdicts,
)
from benchmarks.gpu.room import EventClock, Room, WallClock
from benchmarks.workloads import seed_network
from tests.benchmarks import sample_outputs as samples


@pytest.mark.parametrize(
    ("text", "errors", "findings"),
    [
        (samples.MEMCHECK, 25, (("out-of-bounds", 7),)),
        (samples.MISALIGNED, 1, (("misaligned", 6),)),
        (samples.RACECHECK, 1, (("race", 28),)),
        (samples.INITCHECK, 1, (("uninitialized", 41),)),
        (samples.SYNCCHECK, 2, (("barrier-divergence", 8), ("warp-sync", 9))),
        (samples.CLEAN, 0, ()),
        (samples.NO_HAZARD, 0, ()),
        (samples.STOPPED, None, ()),
        ("", None, ()),
    ],
)
def test_verdict_of_the_sanitizer(text, errors, findings):
    verdict = sanitizer.parse(text)
    assert verdict.errors == errors and verdict.findings == findings


def test_a_finding_without_a_line_is_still_one():
    text = samples.INITCHECK.replace(" in /tmp/x/sum.cu:41", "")
    assert sanitizer.parse(text).findings == (("uninitialized", None),)


def test_metrics_of_the_profiler_are_summed_over_launches():
    name = profiler.METRICS["global", "load", "sectors"]
    other = profiler.METRICS["shared", "load", "wavefronts"]
    text = (
        samples.NCU_START
        + samples.NCU_HEAD
        + samples.ncu_table({name: 2048, other: "n/a"})
        + samples.ncu_table({name: 1}, launch=1)
    )
    assert profiler.parse(text) == {name: 2049.0}


def test_metrics_of_each_kernel():
    """A warp instruction is 32 of threads: 3200 multiply-adds in 200 instructions are half."""
    values = dict.fromkeys(profiler.OF_KERNELS.values(), 0)
    ns, issued, fused, size, warps = profiler.OF_KERNELS.values()
    first = values | {ns: 1000, issued: 200, fused: 3200, size: 4000, warps: 25}
    text = samples.NCU_START + samples.NCU_HEAD + samples.ncu_table(first)
    text += samples.ncu_table(first | {ns: 3000}, launch=1)
    (row,) = profile.rows("sgemm", profiler.by_kernel(text))
    assert row[2:] == ["2", "2", "200", "50%", "0.004", "2", "25 %"]


def test_a_profiler_that_refuses_is_quoted():
    with pytest.raises(ValueError, match="ERR_NVGPUCTRPERM"):
        profiler.parse(samples.NCU_REFUSED)


@pytest.mark.second
def test_checker_counts_of_the_two_bad_transposes():
    """128x128 floats are 512 requests of a warp; a row is 4 sectors, a column 32, one bank 32."""
    kernels = {kernel.name: kernel for kernel in gallery.for_counts()}
    rows = counts.counts(kernels["transpose_rows"].check(profile=True))
    assert rows["global", "load", "sectors"] == 4 * 512
    assert rows["global", "store", "sectors"] == 32 * 512
    tile = counts.counts(kernels["transpose_conflicts"].check(profile=True))
    assert tile["shared", "load", "wavefronts"] == 32 * 512
    assert tile["shared", "load", "conflicts"] == 31 * 512
    assert tile["shared", "store", "conflicts"] == 0


REPORT = """<testsuites><testsuite>
<testcase classname="tests.a" name="test_x[cuda-float32]"/>
<testcase classname="tests.a" name="test_x[float64-cuda]"><failure message="2 is not
  3"/></testcase>
<testcase classname="tests.a" name="test_x[cuda]"><skipped/></testcase>
<testcase classname="tests.c" name="test_y"><error/></testcase>
</testsuite></testsuites>"""


def test_report_of_pytest():
    outcomes, failed = suite.read_report(REPORT)
    assert outcomes == {"passed": 1, "failed": 1, "skipped": 1, "error": 1}
    assert failed == ["`tests.a::test_x[float64-cuda]`: 2 is not 3", "`tests.c::test_y`"]


def pytest_runs(monkeypatch, reports):
    """In the place of pytest: for each file a report, nothing, or an error; who was called."""
    called = []

    def run(command, limit, variables):
        file = command[-1]
        called.append(file)
        path = next(w for w in command if w.startswith("--junitxml=")).partition("=")[2]
        if isinstance(reports[file], Exception):
            raise reports[file]
        if reports[file]:
            Path(path).write_text(reports[file])
        return subprocess.CompletedProcess(command, 139, "", "Segmentation fault")

    monkeypatch.setattr(suite.children, "run", run)
    monkeypatch.setattr(suite, "files", lambda room: list(reports))
    return called


def test_a_file_of_tests_fails_alone(monkeypatch):
    good = '<testsuite><testcase name="test_x[cuda]"/></testsuite>'
    reports = {
        "tests/ops/test_a.py": good,
        "tests/ops/test_b.py": REPORT,
        "tests/ops/test_c.py": "",
        "tests/ops/test_d.py": subprocess.TimeoutExpired("pytest", 200),
    }
    called = pytest_runs(monkeypatch, reports)
    told = []
    room = Room("cuda", WallClock())
    room.on_news(lambda result: told.append(str(result.blocks[1])))
    result = suite.run(room)
    text = "\n".join(map(str, result.blocks))
    assert "| `tests/ops/test_a.py` | 1 | 0 | 0 | 0 |" in text
    assert "| `tests/ops/test_b.py` | 1 | 1 | 1 | 1 |" in text
    assert "test_c.py`: ended with 139: Segmentation fault" in text
    assert "test_d.py`: stopped after 200 s" in text
    assert "| together | 2 | 1 | 1 | 1 |" in text and result.failed == "4 tests or files"
    assert len(told) == 4 and sorted(called) == sorted(reports)
    # and a call that goes on leaves out what was right
    called.clear()
    suite.run(Room("cuda", WallClock(), before=text))
    assert sorted(called) == sorted(reports)[1:]


def test_a_suite_of_which_nothing_passed_has_failed(monkeypatch):
    pytest_runs(monkeypatch, {"tests/ops/test_a.py": "<testsuite></testsuite>"})
    assert suite.run(Room("cuda", WallClock())).failed == "no test passed"


@pytest.mark.second
def test_the_suite_takes_the_cupy_that_is_imported_first(tmp_path):
    """With another CuPy before the stand-in, tests run on that one, here one without a GPU."""
    for name in ("cupy", "cupyx"):
        (tmp_path / f"{name}.py").write_text(
            "import types\n"
            "class cuda:\n"
            "    is_available = staticmethod(lambda: print('the first CuPy') or False)\n"
        )
    words = suite.command("tests/ops/test_relu.py", tmp_path / "report.xml", rehearse=False)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    out = children.run([*words, "-s", "-x"], 60, {**suite.VARIABLES, "PYTHONPATH": path})
    outcomes, failed = suite.read_report((tmp_path / "report.xml").read_text())
    assert outcomes["failed"] == 1 and "cuda" in failed[0], out.stdout
    assert "the first CuPy" in out.stdout and "DeviceError" in out.stdout


def tool(folder, name, script):
    """An executable in the place of one of NVIDIA's tools."""
    path = folder / name
    path.write_text(f"#!{sys.executable}\nimport sys, time\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.mark.second
def test_a_child_is_stopped_with_its_own_children(tmp_path):
    """The child starts a grandchild that would hold the pipe open, and names it in a file."""
    grandchild = tmp_path / "pid"
    path = tool(
        tmp_path,
        "starts-another",
        (
            "import subprocess\n"
            "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
            f"open({str(grandchild)!r}, 'w').write(str(p.pid)); time.sleep(60)"
        ),
    )
    with pytest.raises(subprocess.TimeoutExpired):
        children.run([str(path)], 3)
    assert ends(grandchild.read_text())


def ends(pid):
    """Does this process, which has been killed, end within ten seconds?"""
    state = Path(f"/proc/{pid}/stat")
    for _ in range(100):
        try:
            if state.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.1)
    return False


@pytest.mark.second
def test_a_child_does_not_outlive_a_parent_that_is_killed(tmp_path):
    noted = tmp_path / "pid"
    child = f"import os, time; open({str(noted)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    parent = (
        f"from benchmarks import children; children.run(['{sys.executable}', '-c', {child!r}], 50)"
    )
    process = subprocess.Popen([sys.executable, "-c", parent], cwd=children.ROOT)
    for _ in range(100):
        if noted.exists() and noted.read_text():
            break
        time.sleep(0.1)
    pid = noted.read_text()
    assert Path(f"/proc/{pid}").exists()
    process.kill()
    process.wait()
    assert ends(pid)


def test_what_a_sanitizer_says_becomes_a_cell(tmp_path, monkeypatch):
    kernel = gallery.wrong()[0]
    script = f"print({samples.RACECHECK!r}) if 'racecheck' in sys.argv else sys.exit('no device')"
    path = str(tool(tmp_path, "compute-sanitizer", script))
    assert verdicts.sanitizer_cell(kernel, path, "racecheck", "emulator") == ("race:28", {"race"})
    said, kinds = verdicts.sanitizer_cell(kernel, path, "memcheck", "emulator")
    assert said == "did not run: no device" and not kinds
    monkeypatch.setattr(verdicts, "LIMIT", 0.5)
    slow = str(tool(tmp_path, "slow", "time.sleep(60)"))
    assert verdicts.sanitizer_cell(kernel, slow, "memcheck", "emulator")[0] == "hangs"


@pytest.mark.second
def test_verdicts_beside_a_sanitizer(tmp_path, monkeypatch):
    """The stand-in finds a race in everything: right once, wrong twice, and blames a right one."""
    tool(tmp_path, "compute-sanitizer", f"print({samples.RACECHECK!r})")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    page = "\n".join(map(str, verdicts.run(Room("emulator", WallClock(), rehearse=True)).blocks))
    assert "| checker | 2 of 2 | 0 of 1 |" in page
    assert "| racecheck | 1 of 2 | 1 of 1 |" in page and "| compute-sanitizer | 1 of 2 |" in page
    assert "| oob_tail_guard_missing | out-of-bounds | out-of-bounds | race:28 |" in page
    assert "`launched transpose_padded`" in page


@pytest.mark.second
def test_kernels_alone_and_under_a_sanitizer(tmp_path, monkeypatch):
    """The stand-in of the tool launches nothing and finds a race each time."""
    tool(
        tmp_path, "compute-sanitizer", f"print('launched 3 kernels'); print({samples.RACECHECK!r})"
    )
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(safe, "REHEARSED", ("relu.cu",))
    result = safe.run(Room("emulator", WallClock(), rehearse=True))
    table = str(result.blocks[0])
    assert "| nothing | " in table and "| racecheck | 3 | 0 | 1 |" in table
    assert result.failed == "a kernel is wrong on this device"


@pytest.mark.second
def test_what_only_the_sanitizer_names_is_lost(tmp_path, monkeypatch):
    tool(tmp_path, "compute-sanitizer", f"print({samples.RACECHECK!r})")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(verdicts, "checker_cell", lambda kernel: ("clean", set()))
    result = verdicts.run(Room("emulator", WallClock(), rehearse=True))
    (line,) = result.lost
    assert line.startswith("race_reverse_no_barrier: compute-sanitizer names it")


def test_counts_beside_a_profiler(tmp_path, monkeypatch):
    """The stand-in prints the same table for all: it fits transpose_rows, and no other."""
    values = dict.fromkeys(profiler.METRICS.values(), 0)
    values |= {
        profiler.METRICS["global", "load", "requests"]: 512,
        profiler.METRICS["global", "load", "sectors"]: 2048,
        profiler.METRICS["global", "store", "requests"]: 512,
        profiler.METRICS["global", "store", "sectors"]: 16384,
    }
    text = samples.NCU_START + samples.NCU_HEAD + samples.ncu_table(values)
    tool(tmp_path, "ncu", f"print({text!r})")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    result = counts.run(Room("emulator", WallClock(), rehearse=True))
    page = "\n".join(map(str, result.blocks))
    assert "| transpose_rows | global store sectors | 16384 | 16384 | yes |" in page
    assert "| transpose_conflicts | global store sectors | 2048 | 16384 | **no** |" in page
    assert not any(line.startswith("transpose_rows") for line in result.lost)
    assert any(line.startswith("transpose_conflicts, shared load") for line in result.lost)


@pytest.mark.second
def test_the_first_results_of_a_gpu_are_right_on_device_cuda(rehearsed_cuda):
    clock = EventClock(rehearsed_cuda)
    result = smoke.run(Room("cuda", clock, rehearse=True))
    assert not result.failed and "training steps, captured" in str(result.blocks[0])


@pytest.mark.second
def test_each_step_of_ours_is_timed_as_a_graph_too(rehearsed_cuda, as_the_emulator):
    workload = seed_network(2, 4, size=8)
    eager = ours.steps(workload, "emulator")
    assert list(eager) == ["eager", "compiled"]
    steps = ours.steps(workload, "cuda")
    assert steps.keys() == eager.keys() | {f"{name}, captured" for name in eager}
    for name, step in eager.items():
        losses = [step().item() for _ in range(5)]
        as_the_emulator([steps[name]().item() for _ in range(5)], losses)
        captured = steps[f"{name}, captured"]
        as_the_emulator([captured().item() for _ in range(5)], losses)
        assert captured.captured
