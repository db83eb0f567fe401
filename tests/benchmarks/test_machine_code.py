"""The page of main loops before and after: which kernels it takes, and what it says of them."""

import pytest

from benchmarks.machine_code.page import Row, measured, page

DOT = """// instances (TILE=1): dot<float>, dot<double>
// instances (TILE=4): dot<float>, dot<double>
template <typename T>
__global__ void dot(const T* a, const T* b, T* y, int n)
{
    T sum = 0;
#pragma unroll TILE
    for (int i = 0; i < n; ++i) sum += a[i] * b[i];
    *y = sum;
}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "dot.cu").write_text(DOT)
    return tmp_path


@pytest.mark.second
def test_the_best_of_the_instances_that_fit(folder):
    one = measured(Row("one", "dot", "dot<float>", ("TILE=1",)), folder)
    best = measured(Row("best", "dot", "dot<float>"), folder)
    assert one["kernel"] == "dot<float> TILE=1" and one["multiply_adds"] == 1
    assert best["kernel"] == "dot<float> TILE=4" and best["multiply_adds"] == 4
    assert best["kind"] == "FFMA" and best["bytes_a_load"] == 4.0


def test_what_is_not_there_is_told_apart(folder):
    assert measured(Row("absent", "dot", "dot<float>", ("TILE=2",)), folder) is None
    assert measured(Row("absent", "dot", "dot<float>", (), ("TILE",)), folder) is None
    assert measured(Row("absent", "other", "dot<float>"), folder) is None


def test_a_line_has_both_sides():
    about = {"commit": "abc", "date": "2026-01-01", "nvrtc": "13.0", "nvdisasm": "13", "arch": "a"}
    good = {
        "instructions": 100, "kind": "FFMA", "multiply_adds": 90, "bytes_a_load": 16.0,
        "divisions": 0, "local": 0, "is_loop": True,
    }  # fmt: skip
    bad = {**good, "multiply_adds": 0, "bytes_a_load": 4.0, "divisions": 2, "local": 3}
    text = page({**about, "rows": {"x": bad}}, {**about, "rows": {"x": good, "new": good}})
    assert "| x |  | FFMA 90.0% | 100 | 100 | 4.0 | 16.0 | 2, 3 local accesses | 0 |" in text
    assert "| new | - | FFMA 90.0% | - | 100 |" in text
    assert "No GPU was there" in text and "commit abc" in text
