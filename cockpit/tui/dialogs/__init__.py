"""Dialogs that any screen opens."""
