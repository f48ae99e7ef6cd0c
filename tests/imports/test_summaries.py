"""Summaries of wrk, wrk2 and oha as runs, with their counts and percentiles; altered ones give one error."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cockpit.analysis.stability import StabilityKind, run_stability
from cockpit.analysis.thresholds import Status, check_thresholds, parse_threshold
from cockpit.analysis.verdicts.outcome import Design, Outcome
from cockpit.analysis.verdicts.verdict import judge_single_runs
from cockpit.analysis.warnings import Affected, WarningKind, run_warnings
from cockpit.analysis.windows import segment_window
from cockpit.imports.runs import ForeignRun
from cockpit.imports.session import session_of
from cockpit.imports.summaries import Summary, _wrk_seconds, is_oha, is_wrk, parse_oha, parse_wrk, run_of_summary
from cockpit.metrics.results import RunResult, run_result
from cockpit.metrics.values import metric_value
from cockpit.model.fold.fold import fold_all
from cockpit.model.state import State
from cockpit.report.run import run_text
from tests.commands import cockpit
from tests.servers import http_server

RESULTS = Path(__file__).parent / "results"
# wrk 4.1.0 with --latency.
WRK = (RESULTS / "wrk.txt").read_text()
# oha 1.16.0: -z 2s -q 60 -c 6 -t 1s --output-format json, against a server that also fails, closes connections and is
# late; and -n 20 against a closed port.
OHA: dict[str, Any] = json.loads((RESULTS / "oha.json").read_text())
OHA_REFUSED = (RESULTS / "oha_refused.json").read_text()
# wrk2 (commit 44a94c1) with --latency -U, against a server that answers some requests after 1.5 s.
WRK2 = (RESULTS / "wrk2.txt").read_text()


def read(text: str) -> Summary:
    return parse_wrk(iter(text.splitlines(keepends=True)))


def state_of(run: ForeignRun) -> State:
    return fold_all(session_of("x", 1000.0, run))


def result_of(summary: Summary) -> RunResult:
    return run_result(state_of(run_of_summary(summary)), 1)


def test_duration_of_a_slow_server_is_the_printed_one() -> None:
    assert _wrk_seconds(3, {"seconds": 40.02, "rate": 0.07}) == 40.02
    assert _wrk_seconds(30_000, {"seconds": 30.0, "rate": 999.5}) == pytest.approx(30.015)


def test_a_summary_of_wrk_has_its_counts_and_percentiles() -> None:
    assert is_wrk(WRK.splitlines()[0])
    result = result_of(read(WRK))
    counts = result.counts
    assert result.plan.url == "http://web1/a" and result.plan.concurrency == 100 and result.plan.duration == 30
    # The rate has more digits than the duration.
    assert result.seconds == pytest.approx(175_512 / 5844.55) and result.rate == pytest.approx(5844.55)
    assert counts.completed == 175_512 and counts.sent == 175_520 and counts.bytes_received == round(31.52 * 2**20)
    assert counts.errors == {"read": 7, "write": 1} and counts.unexpected == {"status": 66, "timeout": 12}
    assert counts.failed == 86 and counts.service.count == 175_500 and not counts.response
    for name, milliseconds in (("p50", 4.7), ("p75", 7.26), ("p90", 11.21), ("p99", 24.7), ("max", 131.15)):
        assert 1000 * (metric_value(result, name) or 0) == pytest.approx(milliseconds, rel=1e-3), name
    assert counts.service.mean == pytest.approx(0.00606)
    assert any("12 responses took longer than wrk's --timeout" in warning for warning in result.warnings)


def test_a_summary_of_wrk_without_percentiles_has_no_latencies() -> None:
    head, _, rest = WRK.partition("  Latency Distribution\n")
    result = result_of(read(head + rest[rest.index("  175512") :]))
    assert result.rate == pytest.approx(5844.55) and metric_value(result, "p50") is None
    assert any("no percentiles, only mean 6.06 ms and maximum 131.2 ms" in warning for warning in result.warnings)
    assert result.totals is not None and result.totals.percentiles == ()
    # The server closed each of its connections within the first 10 s; wrk2 does not open them again.
    result = result_of(read((RESULTS / "wrk2_stalled.txt").read_text()))
    assert result.counts.completed == 147 and result.counts.errors == {"read": 6, "timeout": 16}
    assert not result.counts.latency
    assert result.warnings[-1] == "no latencies; wrk2 discards those of its first 10 s (calibration)"
    assert "latencies unknown" in run_text(result)


def test_the_spectrum_of_wrk2_is_response_time() -> None:
    result = result_of(read(WRK2))
    counts = result.counts
    assert counts.completed == 690 and counts.unexpected == {"status": 42} and result.rate == pytest.approx(53.05)
    # wrk2 discards the latencies of its first 10 s.
    assert not counts.service and counts.response.count == 150
    recorded = WRK2[: WRK2.index("HdrHistogram - Uncorrected")]
    spectrum = re.findall(r"^ +([\d.]+) +([\d.]+) +\d+ +[\d.inf]+$", recorded, re.MULTILINE)
    assert len(spectrum) == 39
    for milliseconds, share in spectrum:
        ours = 1000 * counts.response.percentile(100 * float(share))
        assert ours == pytest.approx(float(milliseconds), rel=2e-3), share
    assert counts.response.mean == pytest.approx(1.063272) and counts.response.max == pytest.approx(3.57376, rel=1e-3)
    assert result.plan.duration == 13 and result.plan.concurrency == 4
    assert result.totals is not None and result.totals.tool == "wrk2" and len(result.totals.percentiles) == 39
    [found] = [one for one in run_warnings(result) if one.kind is WarningKind.INTERPOLATED]
    assert found.subject == "" and found.values["count"] == len(result.totals.percentiles)
    text = run_text(result)
    assert "response time: from the scheduled send" in text and "service" not in text
    assert re.search(r"^ +99% +3530$", text, re.MULTILINE)
    rule = "-" * 58
    recorded, uncorrected, rest = WRK2.split(rule)
    assert "HdrHistogram - Uncorrected" in uncorrected
    assert read(WRK2) == read(recorded + rule + rest)


def test_the_json_of_oha_has_its_counts_and_percentiles() -> None:
    text = (RESULTS / "oha.json").read_text()
    assert is_oha("".join(text.splitlines()[:2])) and is_oha(json.dumps(OHA)) and not is_oha('{"metrics":{')
    result = result_of(parse_oha([text]))
    counts, printed, latencies = result.counts, OHA["summary"], OHA["metrics"]["latency_ms"]
    assert counts.statuses == {200: 100, 302: 2, 404: 3, 500: 2, 503: 3} and counts.completed == 110
    assert counts.errors == {"closed_before_response": 3, "closed_early": 2, "timeout": 1, "other": 3}
    assert counts.abandoned == 2 and counts.failed == 17
    # oha's rate also counts requests without a response, its success rate none that were in flight at the end.
    assert result.seconds == printed["total"]
    assert counts.sent / result.seconds == pytest.approx(printed["requestsPerSec"])
    assert counts.completed / counts.ended == pytest.approx(printed["successRate"])
    assert counts.body_bytes == printed["totalData"]
    assert counts.body_bytes // counts.completed == printed["sizePerRequest"]
    assert result.plan.url == "http://unknown.invalid/"
    # By Little's law: 55 responses/s of 19 ms each.
    assert result.plan.concurrency == 1
    for name, seconds in OHA["latencyPercentiles"].items():
        assert metric_value(result, name) == pytest.approx(seconds, rel=1e-3), name
    for name in ("p50", "p95", "p99", "max"):
        assert 1000 * (metric_value(result, name) or 0) == pytest.approx(latencies[name], rel=1e-3), name
    assert 1000 * counts.service.mean == pytest.approx(latencies["mean"], abs=0.001)
    assert 1000 * counts.service.min == pytest.approx(latencies["min"], rel=1e-3)
    assert counts.service.count == sum(OHA["responseTimeHistogram"].values())


def test_warnings_name_the_metrics_that_they_are_about_and_stability_is_unknown() -> None:
    found = {one.kind: one for one in run_warnings(result_of(read(WRK)))}
    assert WarningKind.UNTIMED_ERRORS in found and WarningKind.ERRORS not in found
    totals, interpolated = found[WarningKind.TOTALS_ONLY], found[WarningKind.INTERPOLATED]
    assert totals.affected is Affected.TIMED and totals.is_about("rate") and totals.subject == "wrk"
    assert interpolated.is_about("p99") and not interpolated.is_about("rate")
    assert interpolated.subject == "p50, p75, p90, p99, max"
    state = state_of(run_of_summary(read(WRK)))
    found = run_stability(state, state.segments)
    assert found.kind is StabilityKind.TOTALS_ONLY and not found.is_stable


def test_a_comparison_has_changes_without_intervals_and_is_inconclusive() -> None:
    slower = WRK.replace("5844.55", "2922.27").replace("30.03s", "1.00m")
    one, two = (state_of(run_of_summary(read(text))) for text in (slower, WRK))
    before, after = (segment_window(state, state.segments[0]) for state in (one, two))
    verdict = judge_single_runs(before, after)
    assert verdict.outcome is Outcome.INCONCLUSIVE and verdict.design is Design.TOTALS and verdict.values == (1, 1)
    assert [effect.name for effect in verdict.effects] == ["rate", "p99", "p50", "errors"]
    headline = verdict.effects[0]
    assert headline.change == pytest.approx(1.0, rel=1e-3) and headline.low is None and headline.high is None
    assert all(effect.outcome is Outcome.INCONCLUSIVE and effect.detectable is None for effect in verdict.effects)
    assert {one.kind for one in verdict.warnings} == {WarningKind.TOTALS_ONLY, WarningKind.INTERPOLATED}


def test_a_threshold_between_two_reported_percentiles_is_inconclusive() -> None:
    for threshold, status in (
        ("p99 < 25ms", Status.HOLDS),
        ("p99 < 24ms", Status.FAILED),
        ("max < 140ms", Status.HOLDS),
        # Between p90 (11.2 ms) and p99 (24.7 ms).
        ("p95 < 25ms", Status.HOLDS),
        ("p95 < 11ms", Status.FAILED),
        ("p95 < 17ms", Status.INCONCLUSIVE),
        ("service.p99.9 < 50ms", Status.INCONCLUSIVE),
        # Below p50.
        ("p10 < 4.7ms", Status.INCONCLUSIVE),
        ("p10 < 5ms", Status.HOLDS),
        ("rate > 5000", Status.HOLDS),
        ("first_byte.p50 < 1s", Status.FAILED),
    ):
        [found] = check_thresholds([parse_threshold(threshold)], result_of(read(WRK)))
        assert found.status is status


def without(line: str) -> Callable[[str], str]:
    return lambda text: "".join(one for one in text.splitlines(keepends=True) if line not in one)


def instead(old: str, new: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (without("requests in"), "no line 'N requests in T'; save the complete output of wrk"),
        (without("Requests/sec"), "no line 'Requests/sec'"),
        (lambda text: text + text, "line 16: several results; save each in its own file"),
        (instead("5844.55", "100.00"), "requests, duration and Requests/sec contradict each other"),
        (instead("timeout 12", "timeout 999999999"), "more failed responses than requests"),
        (instead("99%   24.70ms", "99%    1.70ms"), "p99 is less than the percentile below it"),
        (instead("50%    4.70ms", "50%    4.7.0ms"), "line 7: could not convert"),
        (instead("50%    4.70ms", "50%  99999999h"), "line 7: '99999999' is out of range"),
        (instead("Latency     6.06ms", "Latency    16.06s"), "the mean latency is above the maximum"),
        (lambda text: re.sub("5844.55|175512", "0", without("Socket")(without("Non-2xx")(text))), "no requests"),
        (lambda text: text + "  1.00%  1.00ms\n" * 3 + "".join(f" {n / 100}%  1.00ms\n" for n in range(2000)), "more"),
    ],
)
def test_a_summary_of_wrk_that_does_not_fit_is_refused(change: Callable[[str], str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        run_of_summary(read(change(WRK)))


def test_a_summary_of_oha_that_does_not_fit_is_refused() -> None:
    for place, value, words in (
        ("summary", None, r"Expected `object`, got `null` - at `\$.summary`; write it with oha --output-format json"),
        ("summary.total", -1, r"Expected `float` >= 0.* at `\$.summary.total`"),
        ("summary.total", 0, "the duration is 0"),
        ("summary.total", 1e6, "lasts 12 days; the maximum is 7"),
        ("summary.slowest", "1", r"Expected `float \| null`, got `str` - at `\$.summary.slowest`"),
        ("summary.totalData", 1.5, r"Expected `int`, got `float` - at `\$.summary.totalData`"),
        ("statusCodeDistribution.200", 1 << 60, r"Expected `int` <= .* at `\$.statusCodeDistribution"),
        ("statusCodeDistribution", {"ok": 1}, r"Expected `int`, got `str` - at `key` in `\$.statusCodeDistribution`"),
        ("latencyPercentiles", {"pp": 1}, "Expected `str` matching regex .* in `.*latencyPercentiles`"),
        ("latencyPercentiles.p50", 1.0, "p75 is less than the percentile below it"),
        ("errorDistribution", [], r"Expected `object`, got `array` - at `\$.errorDistribution`"),
    ):
        with pytest.raises(ValueError, match=words):
            run_of_summary(parse_oha([json.dumps(changed(place, value))]))


def changed(place: str, value: object) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(OHA))
    *parents, last = place.split(".")
    table = copy
    for parent in parents:
        table = table[parent]
    table[last] = value
    return copy


def test_a_summary_of_oha_without_a_response_has_its_errors() -> None:
    """Its percentiles are NaN, which oha writes as null."""
    assert json.loads(OHA_REFUSED)["latencyPercentiles"]["p50"] is None
    result = result_of(parse_oha([OHA_REFUSED]))
    assert result.counts.completed == 0 and result.counts.errors == {"refused": 20} and not result.counts.latency
    assert result.seconds == json.loads(OHA_REFUSED)["summary"]["total"] and result.rate == 0
    assert "no complete response" in run_text(result)


def test_the_commands(tmp_path: Path) -> None:
    (tmp_path / "before.txt").write_text(WRK)
    (tmp_path / "after.txt").write_text(WRK.replace("175512", "351024").replace("5844.55", "11689.10"))
    (tmp_path / "oha.json").write_text(json.dumps(OHA, indent=2))
    for name in ("before.txt", "after.txt", "oha.json"):
        done = cockpit("import", name, "-o", f"{name}.cockpit", cwd=tmp_path)
        assert done.returncode == 0 and f"{name}: summary of " in done.stderr, done.stderr
    compared = cockpit("compare", "before.txt.cockpit", "after.txt.cockpit", cwd=tmp_path).stdout
    assert "inconclusive: rate ×2.0 (no interval)" in compared and "n = 1 vs 1, totals only" in compared
    assert "! latencies are interpolated from 5 percentiles: p50, p75, p90, p99, max" in compared
    assert "simultaneous 95% intervals" not in compared
    [found] = json.loads(cockpit("report", "oha.json.cockpit", "--json", cwd=tmp_path).stdout)
    assert found["completed"] == 110 and found["service"]["p99"] == pytest.approx(0.033777, rel=1e-3)
    kept = cockpit("baseline", "set", "x", "before.txt.cockpit", cwd=tmp_path)
    assert kept.returncode == 2 and "imported totals of wrk; a baseline needs data per second" in kept.stderr
    flags = ["--threshold", "p95 < 17ms", "--threshold", "p99 < 25ms"]
    checked = cockpit("check", "before.txt.cockpit", *flags, cwd=tmp_path)
    assert checked.returncode == 4 and "interpolated between reported percentiles" in checked.stdout
    unstable = cockpit("check", "before.txt.cockpit", "--threshold", "p99 < 25ms", "--stable", cwd=tmp_path)
    assert unstable.returncode == 4 and re.search(r"UNSTABLE +stable +no data per second", unstable.stdout)
    part = cockpit("compare", "before.txt.cockpit@2s..8s", "after.txt.cockpit", cwd=tmp_path)
    assert part.returncode == 2 and "no counted load; choose a run" in part.stderr


def test_a_summary_begins_before_its_file_was_written(tmp_path: Path) -> None:
    file = tmp_path / "wrk.txt"
    file.write_text(WRK)
    assert cockpit("import", file, "-o", tmp_path / "x.cockpit").returncode == 0
    first = json.loads(cockpit("export", tmp_path / "x.cockpit", "--format", "jsonl").stdout.splitlines()[0])
    assert first["wall"] == pytest.approx(file.stat().st_mtime - 175_512 / 5844.55, abs=0.01)


@pytest.mark.lab
@pytest.mark.parametrize("flags", [["--latency"], []])
def test_what_wrk_prints_is_read(tmp_path: Path, flags: list[str]) -> None:
    with http_server() as url:
        command = ["wrk", "-t", "1", "-c", "4", "-d", "1s", *flags, f"{url}/status/503"]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    result = result_of(read(text))
    requests = re.search(r"(\d+) requests in", text)
    rate = re.search(r"Requests/sec: +([\d.]+)", text)
    assert requests and rate
    assert result.counts.completed == result.counts.failed == int(requests[1])
    assert result.rate == pytest.approx(float(rate[1])) and result.plan.url == f"{url}/status/503"
    assert result.plan.concurrency == 4 and result.counts.bytes_received > 92 * int(requests[1])
    assert bool(result.counts.service) == bool(flags)


def test_a_line_takes_linear_time() -> None:
    """No pattern backtracks."""
    for character in "0.%s ":
        many = character * (1 << 18)
        for line in (many, f"  Latency{many}", f"  50%  1ms{many}", f"  1 requests in 1s, 1{many}B read"):
            assert not is_wrk(line)
            with pytest.raises(ValueError, match="no line"):
                read(f"Running 1s test @ http://a/\n{line}\n")
    with pytest.raises(ValueError, match="larger than 1024 KiB"):
        parse_oha(['{"summary":{', *["x" * (1 << 16)] * 20])
