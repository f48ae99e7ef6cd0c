"""Header blocks without a dynamic table, field by field."""

import pytest
from hpack import Encoder, HeaderTuple, NeverIndexedHeaderTuple
from hypothesis import given
from hypothesis import strategies as st

from cockpit.load.failures import Malformed
from cockpit.load.http2.frames import Http2Fault
from cockpit.load.http2.heads import BlockDecoder, FieldCache, Http2Heads
from tests.load.http2.raw import block

_LONG = "v" * 300
names = st.one_of(st.sampled_from(["etag", "date", "content-length", "n" * 200]), st.text("abxyz-", min_size=1))
values = st.one_of(st.sampled_from(["", "5", _LONG]), st.text("abc019 /=;é\x7f", max_size=20))
kinds = st.sampled_from([HeaderTuple, NeverIndexedHeaderTuple])
fields = st.lists(st.builds(lambda kind, name, value: kind(name, value), kinds, names, values), max_size=6)


def encoded(given_fields: list[HeaderTuple], huffman: bool) -> bytes:
    encoder = Encoder()
    encoder.header_table_size = 0
    return encoder.encode([HeaderTuple(":status", "200"), *given_fields], huffman=huffman)


@given(st.lists(st.tuples(fields, st.booleans()), max_size=6))
def test_fields_are_those_of_the_whole_block(blocks: list[tuple[list[HeaderTuple], bool]]) -> None:
    cache, decoder = FieldCache(every_value=True), BlockDecoder(0)
    names_only = FieldCache(every_value=False)
    for given_fields, huffman in blocks:
        data = encoded(given_fields, huffman)
        whole = decoder.decode(data)
        assert cache.decode(data) == whole
        assert [field.name for field in names_only.decode(data)] == [field.name for field in whole]
        for end in range(1, len(data), 1 + len(data) // 8):
            try:
                expected = decoder.decode(data[:end])
            except Http2Fault:
                with pytest.raises(Http2Fault):
                    names_only.decode(data[:end])
            else:
                assert len(names_only.decode(data[:end])) == len(expected)


def test_values_that_matter_are_those_of_the_block() -> None:
    heads = Http2Heads(bodiless=False, keepalive=True, one_length=False)
    for status, length, location in ((200, 5, "/a"), (200, 7, "/b"), (301, 5, "/c"), (200, 5, "/d"), (301, 5, "/e")):
        for number in range(3):
            head = heads.parse(
                block(
                    (":status", str(status)),
                    ("etag", f"{number}"),
                    ("content-length", str(length)),
                    ("location", location),
                )
            )
            assert (head.status, head.length) == (status, length)
    assert heads.location == "/c"


def test_invalid_fields_are_not_cached() -> None:
    cache = FieldCache(every_value=False)
    for _ in range(2):
        with pytest.raises(Malformed, match="invalid header"):
            cache.decode(block((":status", "200"), ("x", "a\nb")))
    assert cache.decode(block(("x", "a")))[0].value == b"a"
    for invalid in (b"\x7f\xff\xff\xff\xff\xff\x01", b"\xff", b"\x00", b"\x00\x01x", b"\x00\x01x\x05abc", b"\xbe"):
        with pytest.raises(Http2Fault):
            cache.decode(invalid)


def test_the_cache_is_bounded() -> None:
    cache = FieldCache(every_value=True)
    for number in range(1100):
        cache.decode(block(("x-id", str(number)), ("x-long", "v" * (1500 if number % 100 == 0 else 1))))
    assert len(cache._known) <= 512
    assert max(map(len, cache._known)) <= 1024
