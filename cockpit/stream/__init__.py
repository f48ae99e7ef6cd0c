"""A session for other tools while it runs: JSON lines, Prometheus, annotations."""
