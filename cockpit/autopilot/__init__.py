"""Search for better settings under load, and their proof in fresh rounds."""
