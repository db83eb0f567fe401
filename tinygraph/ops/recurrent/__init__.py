"""Whole recurrent layers, each one op."""
