"""What reaches the terminal: lines, styles, themes, the driver."""
