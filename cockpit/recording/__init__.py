"""Recordings: a session in one SQLite file. README describes queries."""
