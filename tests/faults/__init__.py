"""Faults made on purpose: what is lost, and what is said about it.

Each file makes one kind of fault as often as it is told, and returns a `Tally`.  The tests run a
sample of each; `make torture` runs all of them in full and prints the figures (torture.py).
"""
