"""Checks for ops: ours, and those that users write."""

from tinygraph.testing.gradcheck import gradcheck
from tinygraph.testing.report import Mismatch, Report

__all__ = ["Mismatch", "Report", "gradcheck"]
