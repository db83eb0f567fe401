"""Hypothesis profiles, the devices under test, and the parameters of the op contract."""

import os

import pytest
from hypothesis import HealthCheck, settings

# One contract is run by many classes, and machines are shared: neither is a fault of a test.
_calm = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.differing_executors, HealthCheck.too_slow],
}
settings.register_profile("dev", max_examples=20, **_calm)
settings.register_profile("ci", max_examples=50, derandomize=True, **_calm)
settings.register_profile("nightly", max_examples=5000, **_calm)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "dev"))

DEVICES = ["cpu"]


@pytest.fixture(params=DEVICES)
def device(request):
    """Each device that can run ops on this machine."""
    return request.param


def pytest_generate_tests(metafunc):
    """Give the contract's `bad` argument the entries of the class's list `bad_input`."""
    if "bad" in metafunc.fixturenames and metafunc.cls is not None:
        metafunc.parametrize("bad", metafunc.cls.bad_input, ids=lambda case: case.name)
