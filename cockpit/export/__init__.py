"""Formats for other programs: files of a recording or a study, and streams of a running session."""
