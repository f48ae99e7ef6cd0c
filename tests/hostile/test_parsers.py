"""Every parser refuses mutated input with its own errors; `make fuzz` feeds 100,000 mutations to each."""

from __future__ import annotations

import pytest

from tests.hostile.parsers import feed, parsers

# Inputs that a fuzzer found: huge integers of JSON and of a selector, a quoted line break.
FOUND = {
    "import: vegeta.json": b'{"code":200,"timestamp":"2026-11-26T06:15:05Z","latency":%s,"bytes_in":1}\n'
    % (b"9" * 400),
    "selectors": b"a#" + b"9" * 5000,
    "configuration: nginx": b'http { server { location ~ "a\n" { \n',
}


@pytest.mark.parametrize("name", parsers())
def test_mutated_input_is_parsed_or_refused_in_one_line(name: str) -> None:
    assert feed(name, 20, 0).problem == ""


@pytest.mark.parametrize("name", FOUND)
def test_input_that_once_failed_is_refused_in_one_line(name: str) -> None:
    parser = parsers()[name]
    try:
        parser.parse(FOUND[name])
    except parser.refusals as error:
        assert "\n" not in str(error)
