"""Streams of a running session to other tools: JSON lines, Prometheus, annotations."""
