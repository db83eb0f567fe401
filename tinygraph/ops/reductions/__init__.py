"""Ops that take an axis away, or go along it: sums, extremes, softmax, sorting."""
