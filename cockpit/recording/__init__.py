"""A recording: one SQLite file with one row per event. README describes queries."""
