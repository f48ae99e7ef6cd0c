"""Kinds of servers, a folder each: discovery, grammar, status page, logs, knobs worth offering. Pure."""
