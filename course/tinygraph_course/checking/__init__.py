"""A learner's file is tried step by step, and its mistakes are named."""
