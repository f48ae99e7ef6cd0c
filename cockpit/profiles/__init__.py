"""TOML -> Profile. What is wrong in a file is one line: file, key, what was found, what is allowed."""
