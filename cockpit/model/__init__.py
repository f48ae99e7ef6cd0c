"""Frozen types and pure functions: what happened (events) and what it means (state, fold). No I/O."""
