"""What a hostile host may send: fuzzers and worst cases, on the real parsers."""
