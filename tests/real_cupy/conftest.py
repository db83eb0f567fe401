"""What looks into the driver runs where there is one: with the plugin."""

import pytest

from tests.real_cupy import machine as machines

collect_ignore = [] if machines.started else ["plugin.py", "test_driver.py", "test_make_gpu.py"]


@pytest.fixture
def machine(rehearsed_cuda):
    """The driver, which knows of no violation yet."""
    (found,) = machines.started
    found.violations()
    return found
