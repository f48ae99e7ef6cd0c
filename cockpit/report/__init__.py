"""A run's result as text for people and as JSON for machines."""
