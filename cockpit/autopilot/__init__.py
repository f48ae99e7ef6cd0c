"""Search for better settings under load, and the proof of what it found."""
