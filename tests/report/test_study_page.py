"""A study as HTML and CSV: content, escaping of markup and formulas, and agreement of all formats."""

import csv
import io
import json
import math
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.analysis.verdicts.outcome import Design, Effect, Outcome, SpeedAdjustment, Verdict
from cockpit.analysis.warnings import RunWarning, WarningKind
from cockpit.analysis.words.verdicts import change_words
from cockpit.cli import main
from cockpit.cli.study_folder import result_in
from cockpit.export.study_csv import runs_csv, verdicts_csv
from cockpit.model.study import Study, Variant
from cockpit.report.study import study_page, study_text
from cockpit.report.study_json import study_json
from cockpit.study.collecting import collect
from cockpit.study.plan import StudyStep
from cockpit.study.results import Contradiction, StudyResult, StudyVerdict
from tests.report.test_page import EVIL, assert_escaped, outline
from tests.report.test_summary import verdicts
from tests.study.sessions import STUDY, session, whole_study

RATES = {"few": 1000.0, "few again": 1000.0, "more": 1200.0}
RECORDED = Path(__file__).parents[1] / "recordings" / "study"
LEVELS = replace(STUDY, levels=(1.0, 8.0, 64.0), rounds=1)


def result_of(study: Study = STUDY, **rates: float) -> StudyResult:
    known = {variant.name: 1000.0 for variant in study.variants} | rates
    return collect([session(study, range(1, study.rounds + 1), known)], "small")


@pytest.fixture(scope="module")
def small() -> StudyResult:
    return result_of(more=1200.0)


def text_of(html: str) -> str:
    return " ".join(outline(html).texts)


def rows_of(html: str, section: str) -> list[list[str]]:
    """Return the text of all table cells in a section of the page."""
    inside = html.partition(f'<section id="{section}">')[2].partition("</section>")[0]
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", inside, re.DOTALL)
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in rows]
    return [[unescape(re.sub(r"<[^>]+>", "", cell)) for cell in row] for row in cells if row]


def test_page_is_complete_self_contained_and_deterministic(small: StudyResult) -> None:
    html = study_page(small)
    page_text = text_of(html)
    for section in ("Setup", "Verdicts", "Effects by metric", "Runs", "Latency", "Results", "Method and limits"):
        assert section in page_text
    assert "Why? Because." in page_text and "closed c=20 n=1000" in page_text
    assert ["few", "–", "–", "–"] in rows_of(html, "setup")
    assert ["more", "–", "http://web2/hello.html", "–"] in rows_of(html, "setup")
    assert "order, round 2" in page_text and "2 of at most 2 in random order, seed 1" in page_text
    ((comparison, word, change, basis),) = rows_of(html, "verdicts")
    assert (comparison, word, basis) == ("more vs few", "better", "n = 2 vs 2")
    assert re.fullmatch(r"rate \+20% \(\+\d+ to \+\d+%\)", change)
    assert "fewer than 4 rounds: one test" in page_text
    page_text = text_of(study_page(result_of(replace(STUDY, seed=7, rounds=3))))
    assert "3 of at most 3 in random order, seed 7" in page_text and "order, round 3" in page_text
    found = outline(html)
    assert not {"script", "iframe", "object", "embed", "base", "form", "img"} & found.tags
    assert re.findall(r"(?:src|href|action|data)=\"(?!#|data:)", html) == []
    assert "default-src 'none'" in html and "prefers-color-scheme: dark" in html and "width=device-width" in html
    assert study_page(small) == html
    result = result_in(RECORDED)
    facts = result.hosts["demo"]
    assert f"host demo {facts.hostname}, kernel {facts.kernel}, {facts.cpus} CPUs" in text_of(study_page(result))


CONTROL = Variant(name="few again", control=True)
WITH_CONTROL = replace(STUDY, variants=(*STUDY.variants, CONTROL), rounds=6, discard=0, runs=1)


def with_control(rates: dict[str, float], study: Study = WITH_CONTROL) -> StudyResult:
    return whole_study(study, lambda step: rates[step.variant.name] * (1 + step.round % 3 / 200))


def test_control_is_in_each_table_but_not_a_counted_verdict() -> None:
    result = with_control(RATES)
    html = study_page(result)
    control, compared = rows_of(html, "verdicts")
    assert (control[0], control[1]) == ("few again vs few same settings", "equivalent")
    assert (compared[0], compared[1]) == ("more vs few", "better")
    plots = rows_of(html, "effects")
    names = len({effect.name for compared in result.verdicts for effect in compared.verdict.effects})
    assert [row[0] for row in plots].count("few again vs few same settings") == names
    assert html.count('<span class="soft">few again vs few</span>') == names + 1
    assert "<b>1</b><small>better</small>" in html and "<b>0</b><small>equivalent</small>" in html
    assert "minimum detectable effect" in text_of(html)
    assert {line["control"] for line in csv.DictReader(io.StringIO(verdicts_csv(result)))} == {"true", "false"}
    compared = rows_of(study_page(with_control(RATES | {"few again": 1200.0, "more": 1100.0})), "verdicts")[1]
    assert compared[2].endswith("the A/A control differs too: repeated set-ups of the same settings differ")
    keys = re.findall(
        r'<span class="key c(\d)">([^<]+)',
        study_page(with_control(RATES, replace(WITH_CONTROL, levels=(1.0, 64.0), rounds=2))),
    )
    assert set(keys) == {("0", "few"), ("1", "more"), ("7", "few again")}, "the same colour in all charts"
    assert len(keys) >= 3 * 5


def test_warnings_of_several_verdicts_are_merged(small: StudyResult) -> None:
    (compared,) = small.verdicts
    waited = "the generator waited 4–9% of the time for a CPU: latencies include that wait"
    found = []
    for label, share in (("a vs b", 0.04), ("c vs b", 0.09)):
        warning = RunWarning(kind=WarningKind.CPU_WAIT, values={"share": share})
        found.append(replace(compared, verdict=replace(compared.verdict, label=label, warnings=(warning,))))
    html = study_page(replace(small, verdicts=tuple(found)))
    shown = html.partition('<section id="verdicts">')[2].partition("<details>")[0]
    assert f'<ul class="warn"><li>a vs b, c vs b: {waited}</li></ul>' in shown


def test_each_run_is_a_dot(small: StudyResult) -> None:
    html = study_page(small)
    rate = html.partition("<h3>req/s</h3>")[2].partition("<h3>")[0]
    dots = re.findall(r'point( pale)?" d="[^"]+"><title>([^<]+)', rate)
    assert len(dots) == 12 and sum(bool(pale) for pale, _ in dots) == 4
    assert any(title.startswith("round 2, run 7") and title.endswith(": 500, not counted") for _, title in dots)


def test_levels_have_charts_and_warnings_are_next_to_metrics() -> None:
    html = study_page(result_of(LEVELS, more=1200.0))
    outline(html)
    charts = re.findall(r"<figure.*?</figure>", html, re.DOTALL)
    figure = next(chart for chart in charts if "req/s by connections" in chart)
    assert re.findall(r'class="key c\d">(\w+)', figure) == ["few", "more"]
    assert re.findall(r'<span class="x[^"]*"[^>]*>(\w+)', figure) == ["1", "8", "64"]
    assert len(re.findall(r"dot\"", figure)) == 18, "a dot per run"
    assert [row[0] for row in rows_of(html, "verdicts")] == [f"more vs few · c={level}" for level in (1, 8, 64)]
    assert html.count("latency (ms) by percentile") >= 3
    html = study_page(result_of(replace(STUDY, runs=1, rounds=1), few=100.0, more=120.0))
    few = "few samples ("
    metrics = [part.partition("</section>")[0] for part in html.split("<div class=part><h3>")[1:]]
    named = {re.split(r"[ <]", metric)[0] for metric in metrics if few in metric}
    assert named == {"p99", "max"}, "not rate, not p50"


def test_levels_of_connections_have_the_scalability_law() -> None:
    def rate(step: StudyStep) -> float:
        number, contention = step.level or 0, {"few": 0.1, "more": 0.02}.get(step.variant.name, 0.1)
        return 1000 * number / (1 + contention * (number - 1) + 0.001 * number * (number - 1))

    study = replace(STUDY, levels=(1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0), rounds=1)
    result = collect([session(study, [1], rate)], "small")
    few, more = json.loads(study_json(result))["scalability"]
    assert (few["label"], more["label"]) == ("few", "more")
    assert few["contention"]["value"] == pytest.approx(0.1, rel=0.1)
    assert more["peak"]["value"] == pytest.approx(math.sqrt(0.98 / 0.001), rel=0.05)
    text = study_text(result)
    assert more["text"] in text and "scalability (few): peak " in text
    html = study_page(result)
    assert "requests/s by connections" in html and "fitted law" in html
    assert json.loads(study_json(result_of()))["scalability"] == []


def hostile() -> StudyResult:
    evil = Variant(name=EVIL, set=((EVIL, EVIL),), before=(EVIL,))
    names = {EVIL: 1000.0, "=1+1": 1200.0}
    study = replace(
        STUDY,
        variants=(evil, Variant(name="=1+1", url="http://web2/" + EVIL)),
        compare=((EVIL, "=1+1"),),
        form=EVIL,
        observations=(replace(STUDY.observations[1], name=EVIL),),
    )
    found = collect([session(study, [1, 2], names)], EVIL)
    return replace(found, question=EVIL, environment={EVIL: EVIL})


def test_hostile_names_are_escaped_in_html_and_csv() -> None:
    assert_escaped(study_page(hostile()))
    for text in (runs_csv(hostile()), verdicts_csv(hostile())):
        lines = list(csv.reader(io.StringIO(text, newline=""), strict=True))
        assert len({len(line) for line in lines}) == 1
        texts = {cell for line in lines for cell in line}
        assert "'=1+1" in texts and not any(cell.startswith(("=", "@", "+")) for cell in texts)
        assert not {char for char in text if not char.isprintable()} - {"\r", "\n"}


def test_csv_has_a_line_per_run_and_metric_in_full_precision(small: StudyResult) -> None:
    text = runs_csv(small)
    assert text.endswith("\r\n") and "\n" not in text.replace("\r\n", "")
    lines = list(csv.DictReader(io.StringIO(text, newline="")))
    data = json.loads(study_json(small))
    for cell in data["cells"]:
        for run in cell["runs"]:
            own = {
                line["metric"]: line
                for line in lines
                if (line["variant"], line["run"], line["session"]) == (cell["variant"], str(run["run"]), "1")
            }
            assert len(own) >= 20
            assert float(own["rate"]["value"]) == run["rate"]
            assert float(own["p99"]["value"]) == run["response"]["p99"]
            assert float(own["duration"]["value"]) == run["duration"]
            assert own["rate"]["counted"] == str(run["counted"]).lower()
            assert own["observed.hits"]["value"] == "5.0"


def comparison_of(at: int, verdict: Verdict) -> StudyVerdict:
    """Return a comparison of a study with this verdict; its other fields vary with its place."""
    label = f"v{at} vs few"
    low, spread = (None, 0.1) if at % 2 else (0.05, None)
    speed = SpeedAdjustment(change=0.1, low=low, high=0.2, ratio=1.1, spread=spread)
    effects = tuple(replace(effect, speed=speed if at % 3 else None) for effect in verdict.effects)
    return StudyVerdict(
        first="few",
        other=label,
        level=None,
        pass_name="",
        verdict=replace(verdict, label=label, effects=effects),
        control=at % 4 == 0,
        rounds=at,
        excluded=at % 3,
        needed=(None, 4, 60)[at % 3],
        contradiction=[None, *Contradiction][at % (1 + len(Contradiction))],
    )


def effect_from(data: dict[str, Any]) -> Effect:
    names = ("outcome", "before", "after", "relative", "change", "low", "high", "level", "margin", "detectable")
    given = {name: data[name] for name in names}
    return Effect(name=data["metric"], **given | {"outcome": Outcome(data["outcome"])})


def test_page_json_text_and_csv_agree(small: StudyResult) -> None:
    found = [verdict for verdict in verdicts() if verdict.design in (Design.RUNS, Design.ROUNDS)]
    assert {verdict.outcome for verdict in found} == set(Outcome)
    result = replace(small, verdicts=tuple(comparison_of(at, verdict) for at, verdict in enumerate(found)))
    html, data = study_page(result), json.loads(study_json(result))
    outline(html)
    text = study_text(result)
    lines = list(csv.DictReader(io.StringIO(verdicts_csv(result), newline="")))
    verdict_rows = rows_of(html, "verdicts")
    plots = rows_of(html, "effects")
    for compared in data["verdicts"]:
        verdict = compared["verdict"]
        label = f"{verdict['label']}{' same settings' if compared['control'] else ''}"
        (row,) = [row for row in verdict_rows if row[0] == label]
        assert row[1] == verdict["outcome"] and row[2].endswith(compared["warning"])
        assert verdict["text"] in text and verdict["text"] in unescape(html)
        own = [line for line in lines if line["after"] == compared["other"]]
        assert {line["verdict"] for line in own} == {verdict["outcome"]}
        assert {line["contradiction"] for line in own} == {compared["contradiction"] or ""}
        counts = {name: compared[name] for name in ("rounds", "excluded", "needed")}
        counted = {name: "" if count is None else str(count) for name, count in counts.items()}
        assert all(line[name] == value for line in own for name, value in counted.items())
        assert len(own) == max(1, len(verdict["effects"]))
        for effect, line in zip(verdict["effects"], own, strict=False):
            assert (line["metric"], line["outcome"]) == (effect["metric"], effect["outcome"])
            for name in ("change", "low", "high", "margin", "detectable"):
                assert line[name] == ("" if effect[name] is None else repr(effect[name]))
            speed = effect["speed"] or dict.fromkeys(("change", "low", "high", "ratio"))
            for name in ("change", "low", "high"):
                assert line[f"unadjusted_{name}"] == ("" if speed[name] is None else repr(speed[name]))
            assert line["speed_ratio"] == ("" if speed["ratio"] is None else repr(speed["ratio"]))
            shown = [change_words(effect_from(effect), factors) for factors in (False, True)]
            drawn = [plot for plot in plots if plot[0] == label and plot[3] in shown]
            assert any(plot[1].startswith(effect["outcome"]) for plot in drawn)


def test_study_folder_is_reported_in_each_format(tmp_path: Path) -> None:
    formats: tuple[tuple[str, str, tuple[str, ...]], ...] = (
        ("p.html", "<!doctype html>", ()),
        ("p.csv", "variant,level,", ()),
        ("p.json", '{\n  "name": "demo"', ()),
        ("p.md", "### study demo (short)", ()),
        ("p.txt", "study demo (short)", ()),
        ("v", "before,after,", ("--format", "verdicts-csv")),
    )
    for name, begins, flags in formats:
        assert main(["report", str(RECORDED), "-o", str(tmp_path / name), *flags]) == 0
        assert (tmp_path / name).read_text().startswith(begins)


def test_other_folders_are_refused_with_next_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path)]) == 2
    assert "contains no study with runs; choose a recording, or the folder of a study" in capsys.readouterr().err
    for name in ("two", "one"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "study.json").write_text("{}")
    assert main(["report", str(tmp_path)]) == 2
    assert f"contains the studies one, two; use: cockpit report {tmp_path / 'one'}" in capsys.readouterr().err
    file = RECORDED / "1.cockpit"
    assert main(["report", str(file), "--format", "csv"]) == 2
    assert f"use: cockpit export {file} --format csv" in capsys.readouterr().err
