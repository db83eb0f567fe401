"""Checks for ops: ours, and those that users write."""

from tinygraph.testing.gradcheck import Report, gradcheck

__all__ = ["Report", "gradcheck"]
