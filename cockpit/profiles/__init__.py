"""TOML to Profile. An error in a file is one line: file, key, value found, values allowed."""
