"""Output to the terminal: lines, styles, themes, the driver."""
