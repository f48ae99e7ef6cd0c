"""Servers, their files and settings on a host."""
