"""The tuning panel."""
