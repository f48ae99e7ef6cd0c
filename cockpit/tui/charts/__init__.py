"""Charts over time and of latency."""
