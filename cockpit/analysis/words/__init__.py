"""English of verdicts, warnings, thresholds and results."""
