"""What looks into the driver runs where there is one: with the plugin."""

import pytest

from tests.real_cupy import machine as machines

OF_THE_DRIVER = ["plugin.py", "test_driver.py", "test_make_gpu.py", "test_nccl.py"]
collect_ignore = [] if machines.started else OF_THE_DRIVER


@pytest.fixture
def machine(rehearsed_cuda):
    """The driver, which knows of no violation yet."""
    (found,) = machines.started
    found.violations()
    return found
