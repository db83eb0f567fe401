"""The fixture `kernel_check`, as a user's own test folder sees it."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = '''
import numpy as np
KERNEL = """__global__ void twice(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  %s y[i] = 2 * x[i];
}"""

def launch(kernel_check, guard):
    x = np.arange(100, dtype=np.float32)
    y = np.zeros_like(x)
    kernel_check(KERNEL % guard, "twice", 4, 32, x, y, 100)
    np.testing.assert_array_equal(y, 2 * x)

def test_right(kernel_check):
    launch(kernel_check, "if (i < n)")

def test_wrong(kernel_check):
    launch(kernel_check, "")
'''


def test_a_wrong_kernel_fails_with_the_report_and_a_right_one_passes(tmp_path):
    (tmp_path / "test_mine.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tinygraph_pytest"]
    result = subprocess.run(
        [*command, "test_mine.py"], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert "1 failed, 1 passed" in result.stdout, result.stdout
    assert "out-of-bounds" in result.stdout and "[100]" in result.stdout


def test_the_plugin_loads_without_tinygraph():
    code = "import sys, tinygraph_pytest; sys.exit('tinygraph' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
