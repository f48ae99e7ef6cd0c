"""Simulations of verdicts on noise whose truth is known; `make statistics` prints their table."""
