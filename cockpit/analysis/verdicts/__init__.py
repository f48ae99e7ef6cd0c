"""Verdicts on two sides, weighed by other load."""
