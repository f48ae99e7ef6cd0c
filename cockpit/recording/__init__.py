"""A recording: one SQLite file, an event a row. README tells how to query it."""
