"""Checks for ops: ours, and those that users write."""

from importlib import import_module
from typing import Any

from tinygraph.testing.check_op import check_op
from tinygraph.testing.gradcheck import gradcheck
from tinygraph.testing.op_report import CheckOpError, OpReport, Stage
from tinygraph.testing.problem import Bad, Convention, Problem
from tinygraph.testing.report import Mismatch, Report

__all__ = [
    "Bad",
    "CheckOpError",
    "Convention",
    "Mismatch",
    "OpReport",
    "Problem",
    "Report",
    "Stage",
    "check_op",
    "gradcheck",
]


def __getattr__(name: str) -> Any:
    if name == "strategies":  # needs hypothesis, which is an extra
        return import_module("tinygraph.testing.strategies")
    raise AttributeError(f"module 'tinygraph.testing' has no attribute {name!r}")
