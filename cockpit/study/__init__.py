"""Studies: what is run in which order, the runner, and what they come to."""
