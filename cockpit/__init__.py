"""cockpit: a terminal cockpit for people who tune web servers."""

__version__ = "0.1.0"
