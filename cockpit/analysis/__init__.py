"""Thresholds, windows, stationarity, effects and verdicts. Pure."""
