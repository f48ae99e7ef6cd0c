"""The report as HTML and as Markdown: what stands in it, that it is always the same, and that no text is markup."""

from __future__ import annotations

import json
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from cockpit.analysis.outcome import Effect, Outcome
from cockpit.analysis.words import change_words, metric_words
from cockpit.cli import main
from cockpit.model.counts import Group
from cockpit.model.events import (
    AnyEvent,
    ChangeBegun,
    ChangeEnded,
    HostChanged,
    KnobRead,
    Note,
    RoundsEnded,
    RunEnded,
    RunStarted,
    SessionStarted,
    Tick,
)
from cockpit.model.fold import fold_all
from cockpit.model.generator_events import WorkerLost
from cockpit.model.state import State
from cockpit.recording.reader import Recording, last_state
from cockpit.report.charts import decades, from_zero, thinned
from cockpit.report.markdown import markdown, md
from cockpit.report.page import page
from cockpit.report.session_summary import findings
from tests.analysis.test_rounds import rounds_of
from tests.report.test_compare import recorded
from tests.session.events import small_session

EVIL = '"><script>owned = 1</script><img src=x onerror="owned = 1"> \' & \x1b[2J\u202e |`[a](http://evil/)\n# x'
RECORDINGS = Path(__file__).parents[1] / "recordings"
VOID = {"meta", "link", "br", "img", "input", "hr"}


def evil(event: AnyEvent) -> AnyEvent:
    """The event with hostile text wherever a text stands that others wrote."""
    match event:
        case SessionStarted():
            environment = {"kernel": EVIL, EVIL: EVIL}
            return replace(event, name=EVIL, question=EVIL, target=EVIL, environment=environment, version=EVIL)
        case HostChanged(facts=facts) if facts:
            return replace(event, facts=replace(facts, hostname=EVIL, kernel=EVIL), detail=EVIL)
        case RunStarted():
            plan = replace(event.plan, url=f"http://web1/{EVIL}")
            return replace(event, plan=plan, warnings=(EVIL,), addresses=(EVIL,))
        case KnobRead():
            return replace(event, value=EVIL)
        case ChangeBegun():
            settings = tuple(replace(one, new=EVIL) for one in event.settings)
            return replace(event, settings=settings, diff=EVIL, who=EVIL, cost=EVIL)
        case ChangeEnded():
            return replace(event, detail=EVIL)
        case Tick():
            return replace(
                event, errors={EVIL: 1}, unexpected={EVIL: 1}, groups={EVIL: Group(sent=1, errors={EVIL: 1})}
            )
        case RunEnded():
            return replace(event, reason="failed", detail=EVIL)
        case Note():
            return replace(event, text=EVIL)
    return event


def hostile_events() -> list[AnyEvent]:
    lost: list[AnyEvent] = [
        WorkerLost(t=20, run=1, worker=0, detail=EVIL),
        HostChanged(t=59, host="web1", condition="lost", detail=EVIL),
    ]
    return [*map(evil, small_session()), *lost]


def hostile_state() -> State:
    return fold_all(hostile_events())


@pytest.fixture(scope="module")
def hostile_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("page") / "evil.cockpit", hostile_events())


class Outline(HTMLParser):
    """Fails where tags do not match; notes what is there."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.said: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attributes}
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attributes}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said.append(data)


def outline(html: str) -> Outline:
    found = Outline()
    found.feed(html)
    found.close()
    assert found.open == []
    return found


@pytest.fixture(scope="module")
def small() -> str:
    return page(fold_all(small_session()))


def test_all_of_it_is_there(small: str) -> None:
    said = " ".join(outline(small).said)
    for section in ("Verdicts", "Timeline", "Runs", "Latency", "Servers", "Changes", "Environment"):
        assert section in said
    for piece in ("A MaxSpareServers 10 → 30", "2023-11-14 22:13:20 UTC", "looked at it", "throughput", "memory"):
        assert piece in said
    assert "closed c=20 10 s" in said
    assert "inconclusive" in said


def test_runs_are_named_with_the_rows_that_they_are_made_of() -> None:
    started, *rest = small_session()
    state = fold_all([replace(started, thresholds=("failed == 0",)), *rest])
    said = " ".join(outline(page(state)).said)
    assert said.count("run 1 (segments 1, 2)") == 2, "above the thresholds and in the environment"
    assert said.count("run 2 (segment 3)") == 2
    told = markdown(state)
    assert "| run 2 (segment 3) | holds |" in told
    assert "### Run 2 (segment 3)" in told


def test_the_header_has_the_time_under_load_not_the_idle_session() -> None:
    state = fold_all(small_session())
    loaded = sum(result.seconds for result in findings(state).results)
    assert 0 < loaded < state.t
    idle = replace(state, t=792.0)
    assert f"2 runs · {loaded:.0f} s of load" in page(idle).partition("<section")[0]
    assert "00:13:12" not in page(idle).partition("<section")[0]
    assert f", {loaded:.0f} s of load," in markdown(idle).partition("\n## ")[0]


def test_it_needs_nothing_else(small: str) -> None:
    found = outline(small)
    assert not {"script", "iframe", "object", "embed", "base", "form"} & found.tags
    assert re.findall(r"(?:src|href|action|data)=\"(?!#|data:)", small) == []
    assert "default-src 'none'" in small
    assert "@import" not in small
    assert "url(" not in small
    # Every address in it is one that was loaded, as text.
    assert set(re.findall(r"https?://[^\s<\"]+", small)) == {"http://web1/"}


def test_it_is_always_the_same(small: str) -> None:
    assert page(fold_all(small_session())) == small
    assert len(small) < 200_000


def test_hostile_text_is_text() -> None:
    html = page(hostile_state())
    found = outline(html)
    assert not {"script", "img"} & found.tags
    assert not {name for name in found.attributes if name.startswith("on") or name == "src"}
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert any("<script>owned = 1</script>" in said for said in found.said)


def test_hostile_text_is_text_in_markdown() -> None:
    told = markdown(hostile_state())
    assert "\x1b" not in told
    assert not re.search(r"(?<!\\)<(?:script|img)", told)
    assert not re.search(r"(?<!\\)\]\(", told)
    for table in re.findall(r"(?:^\|.*\n)+", told, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1


@pytest.mark.parametrize(
    "command",
    [
        ("report", "FILE"),
        ("report", "FILE", "--format", "md"),
        ("report", "FILE", "--format", "html"),
        ("report", "FILE", "--json"),
        ("compare", "FILE#1", "FILE#2"),
        ("compare", "FILE#1", "FILE#2", "--json"),
        ("check", "FILE"),
        ("check", "FILE", "--json"),
        ("export", "FILE", "--format", "jsonl"),
        ("export", "FILE", "--format", "csv"),
    ],
    ids=" ".join,
)
def test_a_terminal_is_shown_nothing_that_is_not_text(
    hostile_file: Path, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([one.replace("FILE", str(hostile_file)) for one in command]) in (0, 1, 99)
    told = capsys.readouterr().out
    assert told
    assert not {char for char in told if not char.isprintable()} - {"\n"}


def test_hostile_text_leaves_junit_xml_whole(tmp_path: Path) -> None:
    file = recorded(tmp_path / "evil.cockpit", hostile_events())
    output = tmp_path / "check.xml"
    assert main(["check", str(file), "--junit", str(output)]) == 1
    root = ElementTree.parse(output).getroot()
    assert root.find("testsuite/testcase/error") is not None
    assert "<script>owned = 1</script>" in "".join(root.itertext())


@pytest.mark.parametrize("name", ["under-load", "spare-servers", "two-hosts"])
def test_page_markdown_and_json_say_the_same_of_each_verdict(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = RECORDINGS / f"{name}.cockpit"
    assert main(["report", str(file), "--json"]) == 0
    found = [verdict for run in json.loads(capsys.readouterr().out) for verdict in run["verdicts"]]
    with Recording(file) as recording:
        state = last_state(recording)
        html, told = page(state), markdown(state)
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", html)]
    shown = [[unescape(re.sub(r"<[^>]+>", "", cell)) for cell in row] for row in rows]
    for verdict in found:
        assert verdict["text"] in unescape(html)
        assert md(verdict["text"]) in told
        for effect in verdict["effects"]:
            values = {name: effect[name] for name in ("before", "after", "relative", "change", "low", "high", "level")}
            words = change_words(Effect(name=effect["metric"], outcome=Outcome(effect["outcome"]), **values))
            metric = metric_words(effect["metric"])
            assert any(
                (row[0], row[3]) == (metric, words) and row[1].startswith(effect["outcome"])
                for row in shown
                if len(row) >= 4
            ), metric
    assert found or name != "under-load"


def test_markup_is_set_apart() -> None:
    assert md("a|b *c* [d](e) <f>") == r"a\|b \*c\* \[d\](e) \<f\>"
    assert md("see https://evil/ www.evil") == r"see https\://evil/ www\.evil"


def test_sessions_without_much_in_them() -> None:
    events = list(small_session())
    never_read = [event for event in events if not isinstance(event, HostChanged)]
    for some in (events[:1], events[:3], events[:10], never_read):
        found = outline(page(fold_all(some)))
        assert "section" in found.tags
        assert markdown(fold_all(some)).startswith("# small\n")
    outline(page(State()))


@pytest.mark.parametrize(
    ("name", "flags", "begins"),
    [
        ("r.html", (), "<!doctype html>"),
        ("r.md", (), "# small\n"),
        ("r.json", (), "[\n"),
        ("r.txt", (), "run 1  GET http://web1/"),
        ("r", ("--format", "html"), "<!doctype html>"),
        ("r2", ("--json",), "[\n"),
    ],
)
def test_the_ending_or_the_flag_says_the_format(tmp_path: Path, name: str, flags: tuple[str, ...], begins: str) -> None:
    file = recorded(tmp_path / "small.cockpit", list(small_session()))
    output = tmp_path / name
    output.write_text("older")
    output.chmod(0o640)
    assert main(["report", str(file), "-o", str(output), *flags]) == 0
    assert output.read_text().startswith(begins)
    assert output.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["small.cockpit", name])


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    file = recorded(tmp_path / "small.cockpit", list(small_session()))
    (tmp_path / "real.md").write_text("older")
    link = tmp_path / "link.md"
    link.symlink_to("real.md")
    assert main(["report", str(file), "-o", str(link)]) == 0
    assert link.is_symlink()
    assert (tmp_path / "real.md").read_text().startswith("# small\n")


def test_a_report_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = recorded(tmp_path / "small.cockpit", list(small_session()))
    assert main(["report", str(file), "-o", str(tmp_path / "none" / "r.html")]) == 2
    assert "none/r.html: cannot be written: No such file or directory" in capsys.readouterr().err


def test_axes() -> None:
    assert [value for value, _ in from_zero(1234).labels] == [0, 500, 1000, 1500]
    assert from_zero(0).high == 1
    labels = [label for _, label in decades(0.0008, 0.9, "{:g}".format).labels]
    assert labels == ["0.0001", "0.001", "0.01", "0.1", "1"]
    near = decades(0.046, 0.097, "{:g}".format)
    assert [label for _, label in near.labels] == ["0.02", "0.05", "0.1"]
    assert near.at(0.02) == near.at(0.0) == 0
    assert near.at(0.1) == near.at(7.0) == 1
    assert decades(0.5, 0.5, str).high > decades(0.5, 0.5, str).low


def test_many_points_keep_their_peaks() -> None:
    points = [(float(x), 100.0 if x == 777 else 1.0) for x in range(10_000)]
    kept = thinned(points)
    assert len(kept) <= 600
    assert max(value for _, value in kept if value is not None) == 100.0
    assert thinned(points[:10]) == points[:10]


def test_rounds_are_reported_with_their_verdict_seed_and_the_values_that_are_active() -> None:
    ended = RoundsEnded(t=300.0, number=1, outcome="verdict", active="after")
    state = fold_all([*rounds_of(1.3, 5), ended])
    for text in (page(state), markdown(state)):
        assert "5 rounds" in text and "better" in text
        assert "at most 12 rounds, 12 min (seed 7)" in text
        assert "the new values are active: they are not worse" in text
