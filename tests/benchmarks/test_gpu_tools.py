"""Verdicts of compute-sanitizer, counts of ncu and reports of pytest, read from their text."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import children
from benchmarks.gpu import counts, gallery, ours, profiler, sanitizer, suite, verdicts
from benchmarks.gpu.room import Room, WallClock
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


def test_a_profiler_that_refuses_is_quoted():
    with pytest.raises(ValueError, match="ERR_NVGPUCTRPERM"):
        profiler.parse(samples.NCU_REFUSED)


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


def test_report_of_pytest_by_device():
    report = """<testsuites><testsuite>
    <testcase classname="tests.a" name="test_x[cuda-float32]"/>
    <testcase classname="tests.a" name="test_x[float64-cuda]"><failure/></testcase>
    <testcase classname="tests.a" name="test_x[emulator]"><skipped/></testcase>
    <testcase classname="tests.cuda.b" name="test_cuda_is_named"/>
    <testcase classname="tests.c" name="test_y"><error/></testcase>
    </testsuite></testsuites>"""
    outcomes, failed = suite.read_report(report)
    assert outcomes["cuda"] == {"passed": 1, "failed": 1}
    assert outcomes["emulator"] == {"skipped": 1} and outcomes["other"] == {"passed": 1, "error": 1}
    assert failed == ["tests.a::test_x[float64-cuda]", "tests.c::test_y"]


def test_a_suite_without_a_test_on_the_device_has_failed(monkeypatch):
    report = '<testsuite><testcase name="test_x[cpu]"/></testsuite>'

    def pytest_run(command, limit, variables):
        path = next(w for w in command if w.startswith("--junitxml=")).partition("=")[2]
        with open(path, "w") as file:
            file.write(report)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(suite.children, "run", pytest_run)
    result = suite.run(Room("cuda", WallClock()))
    assert result.failed == "no test ran on device 'cuda'"


@pytest.mark.second
def test_the_suite_takes_the_cupy_that_is_imported_first(tmp_path):
    """With another CuPy before the stand-in, tests run on that one, here one without a GPU."""
    for name in ("cupy", "cupyx"):
        (tmp_path / f"{name}.py").write_text(
            "import types\n"
            "class cuda:\n"
            "    is_available = staticmethod(lambda: print('the first CuPy') or False)\n"
        )
    room = Room("cuda", WallClock())
    words = suite.command(room, tmp_path / "report.xml")
    words = [
        *(w for w in words if w not in ("tests", "-n", "4")),
        "-s",
        "-x",
        "tests/ops/test_relu.py",
        "-k",
        "more_than_one_block and cuda",
    ]
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    out = children.run(words, 60, {**suite.VARIABLES, "PYTHONPATH": path})
    outcomes, _ = suite.read_report((tmp_path / "report.xml").read_text())
    assert set(outcomes) == {"cuda"} and outcomes["cuda"]["failed"] == 1, out.stdout
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
    state = Path(f"/proc/{grandchild.read_text()}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


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


def test_verdicts_beside_a_sanitizer(tmp_path, monkeypatch):
    """The stand-in finds a race in everything: right once, wrong twice, and blames a right one."""
    tool(tmp_path, "compute-sanitizer", f"print({samples.RACECHECK!r})")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    page = "\n".join(verdicts.run(Room("emulator", WallClock(), rehearse=True)).blocks)
    assert "| checker | 2 of 2 | 0 of 1 |" in page
    assert "| racecheck | 1 of 2 | 1 of 1 |" in page and "| compute-sanitizer | 1 of 2 |" in page
    assert "| oob_tail_guard_missing | out-of-bounds | out-of-bounds | race:28 |" in page
    assert "`launched transpose_padded`" in page


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
    page = "\n".join(result.blocks)
    assert "| transpose_rows | global store sectors | 16384 | 16384 | yes |" in page
    assert "| transpose_conflicts | global store sectors | 2048 | 16384 | **no** |" in page
    assert not any(line.startswith("transpose_rows") for line in result.lost)
    assert any(line.startswith("transpose_conflicts, shared load") for line in result.lost)


@pytest.mark.second
def test_each_step_of_ours_is_timed_as_a_graph_too(rehearsed_cuda):
    workload = seed_network(2, 4, size=8)
    eager = ours.steps(workload, "emulator")
    assert list(eager) == ["eager", "fused"]
    steps = ours.steps(workload, "cuda")
    assert steps.keys() == eager.keys() | {f"{name}, captured" for name in eager}
    for name, step in eager.items():
        losses = [step().item() for _ in range(5)]
        assert [steps[name]().item() for _ in range(5)] == losses
        captured = steps[f"{name}, captured"]
        assert [captured().item() for _ in range(5)] == losses and captured.captured
