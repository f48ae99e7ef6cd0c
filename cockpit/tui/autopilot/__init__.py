"""The screen of a search: its board, and its keys."""
