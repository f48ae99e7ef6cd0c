"""Profiles: TOML files to Profile. Errors are one line: file, key, problem or value found, values allowed."""
