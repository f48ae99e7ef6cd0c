"""What figures mean: thresholds now; windows, steady state and verdicts later. Pure."""
