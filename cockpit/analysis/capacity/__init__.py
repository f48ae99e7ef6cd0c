"""Capacity: the search, its levels and result, the Universal Scalability Law."""
