"""State from events: pure functions, one module per kind of event."""
