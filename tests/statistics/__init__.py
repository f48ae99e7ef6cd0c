"""Simulations of verdicts on noise with known effects; `make statistics` prints a table."""
