"""Verdicts on switches: one change of a running load."""
