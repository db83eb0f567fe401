"""Ops that slide a window: convolution, pooling, interpolation."""
