"""The runs table and verdicts."""
