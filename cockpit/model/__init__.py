"""Frozen types and pure functions: events, and the state that they add up to (fold). No I/O."""
