"""Submissions of others: points, reports, Gradescope, private cases."""
