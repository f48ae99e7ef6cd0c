"""Plans of load: options, checks, seconds of load."""
