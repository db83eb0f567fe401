"""The page of predicted steps, beside a page of measurements that the code of `make gpu` writes."""

import pytest

from benchmarks import predicted
from benchmarks.gpu import SECTIONS, ours
from benchmarks.gpu.page import FINISHED, Page, Result, section_text
from benchmarks.predicted import Measured, Step, gpu_of, measured, page
from benchmarks.report import Table
from benchmarks.timing import Times, Timing
from benchmarks.workloads import seed_network
from tinygraph.training import Profile
from tinygraph.watch.costs import Cost


def write_measurements(folder, title, name="gpu-h200-2026-01-01.md", rehearse=False):
    """A page with 0.5 ms for a captured step, compiled; other sides and tf32 stand around it."""

    def times(seconds):
        return Times(tuple(Timing(seconds * f, seconds * f) for f in (0.9, 1.0, 1.1))).text()

    strict = Table(["network", "side", "ms a step", "PyTorch eager / this"])
    strict.rows += [
        ["seed", "tinygraph eager", times(0.004), "2.00 (1.00 to 3.00)"],
        ["seed", "tinygraph compiled, captured", times(0.0005), "5.00 (4.00 to 6.00)"],
        ["seed", "PyTorch eager", times(0.0025), "left out"],
    ]
    tf32 = Table(strict.head, [["seed", "tinygraph compiled, captured", times(0.0001), "left out"]])
    blocks = [f"**{ours.STRICT}**", strict, f"**{ours.TF32}**", tf32]
    made = Page(folder / name, list(SECTIONS), rehearse)
    made.begin(title, "about", keep=False)
    made.put("steps", section_text(Result("Training steps", blocks), {}, rehearse), FINISHED)


def step_of(seconds):
    row = Cost(kernel="k<float>", calls=8, bytes=1e6, predicted_seconds=seconds, bound_by="memory")
    return Step("seed", "compiled", {"h200": Profile((row,), device="emulator")})


def test_measured_steps_are_read_from_a_page(tmp_path):
    write_measurements(tmp_path, "tinygraph on NVIDIA H200, 2026-01-01")
    name = "gpu-h200-2026-01-01.md"
    (found,) = measured(tmp_path)
    assert found == Measured("h200", name, "seed", "compiled", pytest.approx(500.0))
    text = page([step_of(200e-6)], [found])
    assert f"| seed | compiled | 200 | 500 | 2.50 | [h200]({name}) |" in text
    assert "No page of measurements" not in text


def test_without_a_page_the_predictions_stand_alone(tmp_path):
    assert measured(tmp_path) == []
    text = page([step_of(200e-6)], [])
    assert "No page of measurements of such a step is kept yet" in text
    assert "| seed | compiled | 8 | 200 |" in text and "Nothing here was measured" in text
    assert "| `k<float>` | 8 | 1.0 | 0.00 | 200.0 | memory |" in text


def test_the_aim_is_held_against_the_prediction():
    assert "Predicted, compiled: 200 us (200 us by memory); 50 us are left" in page(
        [step_of(200e-6)], []
    )
    assert "400 us (400 us by memory); 150 us are missing even" in page([step_of(400e-6)], [])


def test_pages_that_say_nothing_of_a_known_gpu_are_left_out(tmp_path):
    write_measurements(tmp_path, "tinygraph on NVIDIA H20, 2026-01-01", "gpu-h20.md")
    write_measurements(tmp_path, "tinygraph on NVIDIA H200, 2026-01-01", "gpu-r.md", rehearse=True)
    (tmp_path / "gpu-empty.md").write_text("# tinygraph on NVIDIA H200\n")
    # the title of a rehearsal says so itself, as benchmarks/gpu/__main__.py writes it
    rehearsal = (tmp_path / "gpu-r.md").read_text().replace("on NVIDIA", "REHEARSAL, NOT MEASURED")
    (tmp_path / "gpu-r.md").write_text(rehearsal)
    assert measured(tmp_path) == []


@pytest.mark.parametrize(
    "title, gpu",
    [
        ("# tinygraph on NVIDIA H100 80GB HBM3, 2026-01-01", "h100"),
        ("# tinygraph on NVIDIA A100-SXM4-80GB, 2026-01-01", "a100"),
        ("# tinygraph on NVIDIA A10G, 2026-01-01", None),
        ("# tinygraph on Tesla T4, 2026-01-01", "t4"),
        ("# tinygraph on NVIDIA GeForce RTX 4080, 2026-01-01", None),
    ],
)
def test_the_gpu_of_a_title(title, gpu):
    assert gpu_of(title) == gpu


@pytest.mark.second
def test_every_way_of_a_small_network():
    found = predicted.predicted([seed_network(2, 4, size=8)], ["t4", "h200"])
    assert [step.way for step in found] == list(ours.steps(seed_network(2, 4, size=8), "emulator"))
    assert all(step.microseconds("t4") > 0 for step in found)
    text = page(found, [])
    assert "t4, us | h200, us" in text and "sgd_update<float>" in text
