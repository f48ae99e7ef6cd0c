"""Metrics: the catalogue of all metrics, the results of runs, and values as text."""
