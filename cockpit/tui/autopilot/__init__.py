"""The autopilot's screens: progress of a search, its evaluations."""
