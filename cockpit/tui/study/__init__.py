"""The screen of a running study."""
