"""Shells (over SSH, on this machine), the probe, its parsers (pure), and the feed of one host."""
