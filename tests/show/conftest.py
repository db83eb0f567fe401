"""What a picture was made of, before it became a file."""

from __future__ import annotations

import sys

import pytest

from tinygraph.show import figures


@pytest.fixture
def drawn(monkeypatch):
    """The matplotlib figures that were saved."""
    saved = []
    original = figures.save

    def keep(figure, target):
        saved.append(figure)
        return original(figure, target)

    for module in ("confusion", "curves", "feature_maps", "filters", "histograms", "samples"):
        monkeypatch.setattr(sys.modules[f"tinygraph.show.{module}"], "save", keep)
    return saved
