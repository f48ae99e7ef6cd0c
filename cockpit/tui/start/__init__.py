"""The start screen: profiles, recordings, the wizard."""
