"""Kinds of servers, one folder per kind: discovery, grammar, status page, logs, offered knobs. Pure."""
