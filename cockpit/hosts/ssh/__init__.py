"""Shells over SSH: ssh_config, keys, logins, jumps."""
