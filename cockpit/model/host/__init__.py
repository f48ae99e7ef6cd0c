"""Samples of hosts, their rates, windows and state."""
