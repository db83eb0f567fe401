"""Ops that move elements: reshape, indexing, joining, embedding."""
