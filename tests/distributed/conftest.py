"""Programs that are started by mpiexec hold no tests: importing them would join a launch."""

from pathlib import Path

import pytest

collect_ignore = ["on_ranks"]


def pytest_collection_modifyitems(items):
    """One launch at a time where tests are dealt by groups: more ranks than cores wait busily."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("ranks"))
