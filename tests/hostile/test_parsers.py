"""Every parser refuses mutated input with its own errors; `make fuzz` feeds 100,000 mutations to each."""

import pytest

from tests.hostile.parsers import feed, parsers

# Inputs that a fuzzer found: huge integers and infinity in JSON, a huge integer of a selector, a quoted line break.
HIT = b'{"code":%s,"timestamp":"2026-11-26T06:15:05Z","latency":%s,"bytes_in":1}\n'
FOUND = [
    ("import: vegeta.json", HIT % (b"200", b"9" * 400)),
    ("import: vegeta.json", HIT % (b"1e400", b"1")),
    ("selectors", b"a#" + b"9" * 5000),
    ("configuration: nginx", b'http { server { location ~ "a\n" { \n'),
]


@pytest.mark.parametrize("name", parsers())
def test_mutated_input_is_parsed_or_refused_in_one_line(name: str) -> None:
    assert feed(name, 20, 0).problem == ""


@pytest.mark.parametrize(("name", "data"), FOUND)
def test_input_that_once_failed_is_refused_in_one_line(name: str, data: bytes) -> None:
    parser = parsers()[name]
    try:
        parser.parse(data)
    except parser.refusals as error:
        assert "\n" not in str(error)
