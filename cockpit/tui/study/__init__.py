"""A study on the screen."""
