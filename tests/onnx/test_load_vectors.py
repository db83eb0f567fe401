"""The test vectors of the package onnx, against the ledger of how each of them ends."""

import json

import onnx
import pytest

from tests.onnx import vectors
from tests.onnx.vectors import CLASSES, KINDS, LEDGER, PAGE, read_ledger


def against_ledger(kinds):
    """What differs from the ledger; names that only another version of onnx has are left out."""
    found, ledger = vectors.sort_all(kinds), read_ledger()
    wrong = {key: why for key, (verdict, why, _) in found.items() if verdict == "wrong"}
    assert not wrong
    others = []
    for kind in kinds:
        listed = {name: c for c, names in ledger["vectors"][kind].items() for name in names}
        same = ledger["onnx"] == onnx.__version__
        assert not same or listed.keys() == {name for k, name in found if k == kind}
        for (k, name), (verdict, why, _) in found.items():
            if k == kind and listed.get(name, verdict) != verdict:
                others.append((name, listed[name], verdict, why))
    return others


def test_small_networks_of_pytorch():
    assert against_ledger(["pytorch-operator", "simple"]) == []


@pytest.mark.second
def test_all_vectors():
    assert against_ledger(list(KINDS)) == []


def test_the_ledger_and_the_page():
    ledger = read_ledger()
    assert LEDGER.read_text(encoding="utf-8") == json.dumps(ledger, indent=1) + "\n"
    counts = {kind: [len(ledger["vectors"][kind][c]) for c in CLASSES] for kind in KINDS}
    assert counts["node"][0] >= 900 and all(wrong == 0 for *_, wrong in counts.values())
    page = PAGE.read_text(encoding="utf-8")
    for kind, numbers in counts.items():
        assert f"| {kind} | {' | '.join(map(str, numbers))} |" in page
