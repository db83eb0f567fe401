"""A file for each library: `make(workload, variant, threads)` returns a Training.

Each is imported only in the process of its side, by a Python that has the library.
"""
