"""Checks for ops: ours, and those that users write."""

from typing import TYPE_CHECKING

from tinygraph.base.lazy import lazy
from tinygraph.testing.by_hand import memory
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
    "memory",
]

if TYPE_CHECKING:
    from tinygraph.testing import strategies as strategies
else:  # needs hypothesis, which is an extra
    _HOMES = {"strategies": "tinygraph.testing.strategies"}
    __getattr__, __dir__ = lazy(__name__, _HOMES, "testing")
