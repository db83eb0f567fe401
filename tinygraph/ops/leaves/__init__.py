"""Functions that make leaves: constants, counts, random numbers."""
