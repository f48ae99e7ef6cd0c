"""HdrHistogram logs as a run, and histograms from reported percentiles."""

import base64
import json
import struct
import time
import tracemalloc
import zlib
from pathlib import Path
from random import Random

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from cockpit.export.hlog import run_log
from cockpit.imports.hdr import decode
from cockpit.imports.hlog import hlog_run, is_hlog
from cockpit.imports.percentiles import histogram_of
from cockpit.imports.runs import UNKNOWN_URL, ForeignRun
from cockpit.imports.session import session_of
from cockpit.metrics.results import run_result
from cockpit.model.fold.fold import fold_all
from cockpit.model.histogram import EMPTY, Histogram
from tests.commands import cockpit
from tests.servers import http_server
from tests.session.events import small_session

HEAD = (
    '#[Histogram log format version 1.3]\n#[StartTime: 1795469966.500 (seconds since epoch), x]\n"StartTimestamp",x\n'
)
PERCENTS = (0.1, 1, 10, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 100)


def theirs(values: list[int], lowest: int = 1, digits: int = 3) -> HdrHistogram:
    histogram = HdrHistogram(lowest, 1 << 43, digits)
    for value in values:
        histogram.record_value(value)
    return histogram


def line(values: list[int], start: float, tag: str = "", length: float = 1.0) -> str:
    text = theirs(values).encode().decode()
    return f"{tag}{start:.3f},{length:.3f},{max(values) / 1e6:.3f},{text}\n"


def run_of_text(text: str, unit: str = "ns", tag: str | None = None) -> ForeignRun:
    return hlog_run(iter(text.splitlines(keepends=True)), unit, tag)


@pytest.mark.parametrize(("lowest", "digits"), [(1, 3), (1, 2), (1000, 3), (1, 1), (1, 5)])
def test_a_histogram_of_the_library_has_its_percentiles(lowest: int, digits: int) -> None:
    random = Random(digits)
    values = [round(random.lognormvariate(15, 1.5)) for _ in range(5000)]
    one = theirs(values, lowest, digits)
    ours = decode(one.encode().decode(), 1, max(values))
    assert ours.count == 5000 and ours.max_ns == max(values)
    # Theirs is the upper end of their bucket, ours of the one in its middle.
    width = max(10.0**-digits, 10.0**-3)
    for percent in PERCENTS:
        expected = one.get_value_at_percentile(percent)
        assert 1e9 * ours.percentile(percent) == pytest.approx(expected, rel=width, abs=2 * lowest)
    assert ours.mean * 1e9 == pytest.approx(sum(values) / 5000, rel=width)


@given(st.lists(st.integers(0, 2**42), min_size=1, max_size=200))
def test_buckets_of_three_digits_stay_the_same(values: list[int]) -> None:
    ours = decode(theirs(values).encode().decode(), 1, max(values))
    expected = Histogram.of(values)
    assert ours.indices.tolist() == expected.indices.tolist() and ours.counts.tolist() == expected.counts.tolist()
    assert [ours.percentile(percent) for percent in PERCENTS] == [expected.percentile(percent) for percent in PERCENTS]


def test_a_log_of_cockpit_comes_back_as_it_was() -> None:
    before = run_result(fold_all(small_session()), 1)
    run = run_of_text("".join(run_log(small_session(), 1)))
    after = run_result(fold_all(session_of("x", 0.0, run)), 1)
    assert after.counts.completed == before.counts.latency.count
    mine, other = after.counts.latency, before.counts.latency
    assert mine.indices.tolist() == other.indices.tolist() and mine.counts.tolist() == other.counts.tolist()
    for percent in PERCENTS[:-1]:
        assert mine.percentile(percent) == pytest.approx(other.percentile(percent), abs=1e-6)
    assert mine.max == pytest.approx(other.max, abs=1e-6) and after.seconds == pytest.approx(before.seconds, abs=0.11)


def test_intervals_have_their_length_place_and_two_times() -> None:
    text = HEAD + line([9_000_000], 0.0) + line([2_000_000], 0.0, "Tag=service,")
    text += line([8_000_000] * 2, 1.0) + line([3_000_000] * 2, 1.0, "Tag=service,")
    state = fold_all(session_of("x", 0.0, run_of_text(text)))
    result = run_result(state, 1)
    assert result is not None and state.started is not None and state.started.wall == 1795469966.5
    assert result.counts.completed == 3 and result.seconds == 2
    assert (result.counts.response.max, result.counts.service.max) == (pytest.approx(0.009), pytest.approx(0.003))
    assert [second.completed for second in state.seconds] == [1, 2]
    assert result.plan.url == UNKNOWN_URL and "not in the file, shown as 0 or none: statuses" in result.warnings[0]
    text = "#[BaseTime: 1795469900.000 (seconds since epoch)]\n" + line([5_000_000] * 50, 20.0, length=10.0)
    text += line([5_000_000] * 30, 10.0, length=10.0)
    run = run_of_text(text)
    assert run.began == 1795469910.0 and run.seconds == 20
    state = fold_all(session_of("x", 0.0, run))
    assert [(second.start, second.end, second.rate) for second in state.seconds] == [(0, 10, 3), (10, 20, 5)]
    assert run_of_text(line([1], 1795469966.0)).began == 1795469966.0
    assert run_of_text(line([1], 5.0)).began is None


def test_units_and_tags() -> None:
    text = line([1500], 0.0, "Tag=READ,") + line([2500, 2500], 0.0, "Tag=UPDATE,")
    with pytest.raises(ValueError, match="several tags; choose one with --tag: READ, UPDATE"):
        run_of_text(text)
    with pytest.raises(ValueError, match="--tag DELETE: unknown tag; choose one of: READ, UPDATE"):
        run_of_text(text, tag="DELETE")
    run = run_of_text(text, "us", "UPDATE")
    [tick] = run.ticks
    assert tick.completed == 2 and tick.service.percentile(50) == pytest.approx(0.0025, rel=1e-3)
    assert "lines with Tag=UPDATE of an HdrHistogram log, values in us" in run.warnings[0]
    assert [tick.service.count for tick in run_of_text(line([1], 0.0, "Tag=only,")).ticks] == [1]


def packed(body: bytes, digits: int = 3, lowest: int = 1, offset: int = 0, length: int | None = None) -> str:
    head = struct.pack(
        ">IIIIQQd", 0x1C849313, len(body) if length is None else length, offset, digits, lowest, 1 << 43, 1
    )
    inside = zlib.compress(head + body)
    return base64.b64encode(struct.pack(">II", 0x1C849314, len(inside)) + inside).decode()


ONE = packed(b"\x02")


def packed_before_v2(one: HdrHistogram, version: int, word: int) -> str:
    """A histogram with counts of `word` bytes, as versions 0 and 1 write it."""
    counts = [one.get_count_at_index(index) for index in range(one.counts_len)]
    body = b"".join(count.to_bytes(word, "big") for count in counts)
    if version:
        inner = struct.pack(">IIIIQQd", 0x1C849301 | word << 4, len(body), 0, 3, 1, 1 << 43, 1)
    else:
        inner = struct.pack(">IIQQQ", 0x1C849308 | word << 4, 3, 1, 1 << 43, one.total_count)
    inside = zlib.compress(inner + body)
    outer = (0x1C849302 if version else 0x1C849309) | word << 4
    return base64.b64encode(struct.pack(">II", outer, len(inside)) + inside).decode()


@pytest.mark.parametrize(("version", "word"), [(0, 2), (0, 8), (1, 4), (1, 8)])
def test_histograms_of_older_versions_are_read(version: int, word: int) -> None:
    one = theirs([1_000, 2_000_000, 2_000_000, 31_000_000])
    found = decode(packed_before_v2(one, version, word), 1, 31_000_000)
    assert found == decode(one.encode().decode(), 1, 31_000_000) and found.count == 4
    text = f"0.000,1.000,31.000,{packed_before_v2(one, version, word)}\n"
    assert is_hlog(text) and run_of_text(text).ticks[0].completed == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a compressed histogram"),
        ("HISTFAAA", "not a compressed histogram"),
        ("ä", "not a compressed histogram"),
        (packed(b"\x02")[:-8], "not a compressed histogram"),
        (packed(b"\x80"), "damaged histogram"),
        (packed(b"\x02", length=50), "damaged histogram"),
        (packed(b"\x02", digits=9), "damaged histogram"),
        (packed(b"\x02", offset=1), "damaged histogram"),
        (packed(b"\xff" * 9), "damaged histogram"),
        (packed_before_v2(theirs([1]), 1, 6), "damaged histogram"),
        (packed_before_v2(theirs([1]), 0, 8)[:-8], "not a compressed histogram"),
        (packed(b"\xfe" * 8 + b"\x7f"), "too large|damaged"),
        (packed(b"\xff\xff\x07\x02"), "values of the histogram are too large"),
        (packed(b"\x02", lowest=1 << 52), ""),
        (packed(b""), ""),
    ],
)
def test_a_histogram_that_lies_is_refused(text: str, said: str) -> None:
    if not said:
        assert decode(text, 1, 0.0).count in (0, 1)
        return
    with pytest.raises(ValueError, match=said):
        decode(text, 1, 0.0)


def test_a_bomb_takes_little_memory() -> None:
    bomb = packed(bytes(64 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="damaged"):
            decode(bomb, 1, 0.0)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@given(st.binary(max_size=60), st.integers(0, 6), st.integers(0, 2**64 - 1), st.floats())
def test_any_histogram_is_read_or_refused(body: bytes, digits: int, lowest: int, longest: float) -> None:
    try:
        found = decode(packed(body, digits, lowest), 1, min(max(longest, 0.0), 1e18) if longest == longest else 0.0)
    except ValueError:
        return
    assert found.count >= 0 and 0 <= found.percentile(50) <= found.max


def test_a_log_that_does_not_fit_is_refused() -> None:
    for text, said in (
        (HEAD, "no intervals"),
        (HEAD + "0,1,2\n", "line 4: 3 columns instead of 4"),
        (HEAD + "nan,1,2,x\n", "line 4: 'nan' is out of range"),
        (HEAD + "0,1,2,x\n", "line 4: not a compressed histogram"),
        (HEAD + "x,1,2,x\n", "line 4: could not convert"),
        (HEAD + f"0,1,2,{packed(b'')}\n", "no values"),
        (HEAD + f"0,1,2,{ONE}\n900000,1,2,{ONE}\n", "lasts 10 days; the maximum is 7"),
        ("#[BaseTime: 99999999999999 (x)]\n0,1,2,x\n", "line 1: '99999999999999' is out of range"),
        ("#[BaseTime: 1.2.3 (x)]\n0,1,2,x\n", "line 1: could not convert"),
    ):
        assert is_hlog(text)
        with pytest.raises(ValueError, match=said):
            run_of_text(text)


def test_a_log_of_a_run_has_the_percentiles_of_its_recording(tmp_path: Path) -> None:
    """The command, with a real log of `--hlog` beside its recording."""
    log, live, back = tmp_path / "run.hlog", tmp_path / "live.cockpit", tmp_path / "back.cockpit"
    with http_server() as url:
        flags = ["--no-tui", "-c", "2", "-n", "400", "--rate", "400", "--hlog", log, "--record", live]
        done = cockpit("run", f"{url}/", *flags)
    assert done.returncode == 0, done.stderr
    done = cockpit("import", log, "-o", back, "--target", f"{url}/")
    assert done.returncode == 0 and "run.hlog: HdrHistogram log, values in ns" in done.stderr, done.stderr
    [before] = json.loads(cockpit("report", live, "--json").stdout)
    [after] = json.loads(cockpit("report", back, "--json").stdout)
    assert before["completed"] == after["completed"] == 400 and after["url"] == f"{url}/"
    for kind in ("service", "response"):
        for name in ("p50", "p90", "p99", "max"):
            assert after[kind][name] == pytest.approx(before[kind][name], abs=0.0011), (kind, name)


WRK = [(50.0, 0.0047), (75.0, 0.00726), (90.0, 0.01121), (99.0, 0.0247), (100.0, 0.13115)]


def test_reported_percentiles_are_read_back() -> None:
    found = histogram_of(WRK, 10_000, 0.00606)
    for percent, seconds in WRK:
        assert found.percentile(percent) == pytest.approx(seconds, rel=1e-3)
    assert found.count == 10_000 and found.max_ns == 131_150_000 and found.mean == pytest.approx(0.00606)
    found = histogram_of(WRK, 1000)
    assert found.percentile(1) == found.percentile(50) and found.min_ns == 4_700_000
    found = histogram_of(WRK, 3)
    assert found.count == 3 and found.max == pytest.approx(0.13115)
    assert histogram_of(WRK, 1).percentile(50) == pytest.approx(0.13115)
    assert histogram_of(WRK, 0) == histogram_of([], 5) == EMPTY
    found = histogram_of([(0.0, 0.001), (50.0, 0.001), (100.0, 0.1)], 200)
    # Of 100 values between 1 ms and 100 ms each tenth is higher by a fifth of a decade.
    for step in range(1, 11):
        assert found.percentile(50 + 5 * step) == pytest.approx(0.001 * 10 ** (step / 5), rel=2e-3)
    assert found.between([0, 999_000, 1_001_000]) == [0, 100]


def test_contradictions_are_refused() -> None:
    for points, mean, words in (
        ([(50.0, 0.2), (90.0, 0.1)], None, "p90 is less than the percentile below it"),
        ([(50.0, -1.0)], None, "p50 of -1 s is out of range"),
        ([(101.0, 1.0)], None, "p101 of 1 s is out of range"),
        ([(50.0, 1e7)], None, "is out of range"),
        ([(50.0, float("nan"))], None, "is out of range"),
        ([(50.0, 0.1), (100.0, 0.2)], 0.3, "the mean latency is above the maximum"),
        ([(50.0, 0.1), (100.0, 0.2)], float("nan"), "the mean latency is above the maximum"),
        ([(50.0, 1e6)], None, "add up to decades"),
    ):
        with pytest.raises(ValueError, match=words):
            histogram_of(points, 1 << 40, mean)


@given(st.lists(st.integers(1, 2**45), min_size=2, max_size=400), st.integers(1, 30))
def test_any_values_summed_up_as_percentiles_keep_them(values: list[int], number: int) -> None:
    """A percentile between two reported ones lies between their values; counts and maximum are exact."""
    exact = Histogram.of(values)
    percents = sorted({0.0, 100.0, *(100.0 * step / number for step in range(1, number))})
    points = [(percent, exact.percentile(percent)) for percent in percents[1:]]
    found = histogram_of([(0.0, exact.min), *points], len(values), exact.mean)
    assert found.count == len(values) and found.max_ns == exact.max_ns and found.min_ns == exact.min_ns
    assert int(found.counts.sum()) == len(values) and (found.counts > 0).all()
    width = 2e-3
    for (_, low), (percent, high) in zip([(0.0, exact.min), *points], points, strict=False):
        # Neighbours may share a rank; the value is then that of the higher one.
        assert low * (1 - width) <= found.percentile(percent) <= exact.max * (1 + width)
        assert found.percentile(percent) >= high * (1 - width)
    assert Histogram.from_wire(found.to_wire()) == found


@pytest.mark.parametrize("digits", [0, 3])
def test_histograms_that_unpack_to_millions_of_buckets_take_no_time(digits: int) -> None:
    """1,000 lines of 1 kB took minutes; with no digits, single values had megabytes."""
    counts = b"\x02" * 900_000
    packed = zlib.compress(struct.pack(">IIIIQQd", 0x1C849313, len(counts), 0, digits, 1, 1 << 40, 1.0) + counts)
    text = base64.b64encode(struct.pack(">II", 0x1C849314, len(packed)) + packed).decode()
    begun = time.process_time()
    for _ in range(100):
        with pytest.raises(ValueError, match=r"damaged histogram|too large"):
            decode(text, 1, 1e9)
    assert time.process_time() - begun < 1.0
