"""Ops of each element by itself: arithmetic, comparisons, activations, dropout."""
