"""Normalization over a batch, a group, a layer."""
