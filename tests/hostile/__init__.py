"""Fuzzers and worst cases of hostile input, with the real parsers."""
