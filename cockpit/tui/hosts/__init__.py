"""Panes of hosts and what is shown below their metrics."""
