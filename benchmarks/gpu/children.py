"""Child processes with a time limit; they stand in benchmarks.children, which every page shares."""

from benchmarks.children import run

__all__ = ["run"]
