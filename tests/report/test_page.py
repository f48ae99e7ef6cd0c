"""The report as HTML and Markdown: content, determinism, and escaping of text."""

import json
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from cockpit.analysis.verdicts.outcome import Effect, Outcome
from cockpit.analysis.words.verdicts import change_words, metric_words
from cockpit.cli import main
from cockpit.document.markdown import md
from cockpit.metrics.results import all_results
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
)
from cockpit.model.fold.fold import fold_all
from cockpit.model.generators import WorkerLost
from cockpit.model.state import State
from cockpit.model.tick import Tick
from cockpit.recording.reader import Recording, last_state
from cockpit.report.session import session_markdown, session_page
from tests.analysis.test_rounds import rounds_of
from tests.data import data_of
from tests.report.test_compare import recorded
from tests.session.events import small_session

DATA = data_of(__file__)

EVIL = '"><script>owned = 1</script><img src=x onerror="owned = 1"> \' & \x1b[2J\u202e |`[a](http://evil/)\n# x'
RECORDINGS = Path(__file__).parents[1] / "recordings"
VOID = {"meta", "link", "br", "img", "input", "hr"}


def evil(event: AnyEvent) -> AnyEvent:
    """Put hostile text into all fields of an event whose text comes from elsewhere."""
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
            settings = tuple(replace(setting, new=EVIL) for setting in event.settings)
            return replace(event, settings=settings, diff=EVIL, who=EVIL, cost=EVIL)
        case ChangeEnded():
            return replace(event, detail=EVIL)
        case Tick():
            groups = {EVIL: Group(sent=1, errors={EVIL: 1})}
            return replace(event, errors={EVIL: 1}, unexpected={EVIL: 1}, groups=groups)
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
    """Collects tags, attributes and texts; fails if tags do not match."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []

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
        self.texts.append(data)


def outline(html: str) -> Outline:
    found = Outline()
    found.feed(html)
    found.close()
    assert found.open == []
    return found


def test_page_is_complete_self_contained_and_deterministic() -> None:
    small = session_page(fold_all(small_session()))
    assert session_page(fold_all(small_session())) == small
    assert len(small) < 200_000
    found = outline(small)
    page_text = " ".join(found.texts)
    for section in ("Verdicts", "Timeline", "Runs", "Latency", "Servers", "Changes", "Environment"):
        assert section in page_text
    for piece in ("A MaxSpareServers 10 → 30", "2023-11-14 22:13:20 UTC", "looked at it", "throughput", "memory"):
        assert piece in page_text
    assert "closed c=20 10 s" in page_text
    assert "inconclusive" in page_text
    assert not {"script", "iframe", "object", "embed", "base", "form"} & found.tags
    assert re.findall(r"(?:src|href|action|data)=\"(?!#|data:)", small) == []
    assert "default-src 'none'" in small
    assert "@import" not in small
    assert "url(" not in small
    # The only address is that of the target, as text.
    assert set(re.findall(r"https?://[^\s<\"]+", small)) == {"http://web1/"}


def test_runs_have_segments_and_header_has_time_under_load() -> None:
    started, *rest = small_session()
    state = fold_all([replace(started, thresholds=("failed == 0",)), *rest])
    page_text = " ".join(outline(session_page(state)).texts)
    assert page_text.count("run 1 (segments 1, 2)") == 2, "above the thresholds and in the environment"
    assert page_text.count("run 2 (segment 3)") == 2
    text = session_markdown(state)
    assert "| run 2 (segment 3) | holds |" in text
    assert "### run 2 (segment 3)" in text
    state = fold_all(small_session())
    loaded = sum(result.seconds for result in all_results(state))
    assert 0 < loaded < state.t
    idle = replace(state, t=792.0)
    assert f"2 runs · {loaded:.0f} s of load" in session_page(idle).partition("<section")[0]
    assert "00:13:12" not in session_page(idle).partition("<section")[0]
    assert f" · {loaded:.0f} s of load · " in session_markdown(idle).partition("\n## ")[0]


def assert_escaped(html: str) -> None:
    """Check that a page shows the hostile text without its effects."""
    found = outline(html)
    assert not {"script", "img"} & found.tags
    assert not {name for name in found.attributes if name.startswith("on") or name == "src"}
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert any("<script>owned = 1</script>" in text for text in found.texts)


def test_hostile_text_is_escaped_in_html_and_markdown() -> None:
    assert_escaped(session_page(hostile_state()))
    text = session_markdown(hostile_state())
    assert "\x1b" not in text
    # Markup is not interpreted within a line of code, which the text cannot end.
    text = re.sub(r"^`[^`]*`$", "", text, flags=re.MULTILINE)
    assert not re.search(r"(?<!\\)<(?:script|img)", text)
    assert not re.search(r"(?<!\\)\]\(", text)
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1
    assert md("a|b *c* [d](e) <f>") == r"a\|b \*c\* \[d\](e) \<f\>"
    assert md("see https://evil/ www.evil") == r"see https\://evil/ www\.evil"


def test_hostile_output_is_printable_and_valid(
    hostile_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in DATA["hostile_output_is_printable_and_valid_cases"]:
        assert main(command.replace("FILE", str(hostile_file)).split()) in (0, 1, 99), command
        text = capsys.readouterr().out
        assert text
        assert not {char for char in text if not char.isprintable()} - {"\n"}, command
    output = tmp_path / "check.xml"
    assert main(["check", str(hostile_file), "--junit", str(output)]) == 1
    root = ElementTree.parse(output).getroot()
    assert root.find("testsuite/testcase/error") is not None
    assert "<script>owned = 1</script>" in "".join(root.itertext())


@pytest.mark.parametrize("name", ["under-load", "spare-servers", "two-hosts"])
def test_page_markdown_and_json_agree_on_verdicts(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = RECORDINGS / f"{name}.cockpit"
    assert main(["report", str(file), "--json"]) == 0
    found = [verdict for run in json.loads(capsys.readouterr().out) for verdict in run["verdicts"]]
    with Recording(file) as recording:
        state = last_state(recording)
        html, text = session_page(state), session_markdown(state)
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", html)]
    shown = [[unescape(re.sub(r"<[^>]+>", "", cell)) for cell in row] for row in rows]
    for verdict in found:
        assert verdict["text"] in unescape(html)
        assert md(verdict["text"]) in text
        for effect in verdict["effects"]:
            values = {name: effect[name] for name in ("before", "after", "relative", "change", "low", "high", "level")}
            own = Effect(name=effect["metric"], outcome=Outcome(effect["outcome"]), **values)
            changes = [change_words(own, factors) for factors in (False, True)]
            metric = metric_words(effect["metric"])
            assert any(
                row[0] == metric and row[3] in changes and row[1].startswith(effect["outcome"])
                for row in shown
                if len(row) >= 4
            ), metric
    assert found or name != "under-load"


def test_nearly_empty_sessions_and_rounds_are_reported() -> None:
    events = list(small_session())
    never_read = [event for event in events if not isinstance(event, HostChanged)]
    for few in (events[:1], events[:3], events[:10], never_read):
        found = outline(session_page(fold_all(few)))
        assert "section" in found.tags
        assert session_markdown(fold_all(few)).startswith("# small\n")
    outline(session_page(State()))
    ended = RoundsEnded(t=300.0, number=1, outcome="verdict", active="after")
    state = fold_all([*rounds_of(1.3, 5), ended])
    for text in (session_page(state), session_markdown(state)):
        assert "5 rounds" in text and "better" in text
        assert "at most 12 rounds, 12 min (seed 7)" in text
        assert "the new values are active: they are not worse" in text


def test_format_follows_file_extension_or_flag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = recorded(tmp_path / "small.cockpit", list(small_session()))
    formats: tuple[tuple[str, str, tuple[str, ...]], ...] = DATA["format_follows_file_extension_or_flag_cases"]
    for name, begins, flags in formats:
        output = tmp_path / name
        output.write_text("older")
        output.chmod(0o640)
        assert main(["report", str(file), "-o", str(output), *flags]) == 0
        assert output.read_text().startswith(begins)
        assert output.stat().st_mode & 0o777 == 0o640
    assert {path.name for path in tmp_path.iterdir()} == {"small.cockpit", *(name for name, _, _ in formats)}
    link = tmp_path / "link.txt"
    link.symlink_to("r.md")
    assert main(["report", str(file), "-o", str(link)]) == 0
    assert link.is_symlink()
    assert (tmp_path / "r.md").read_text().startswith("run 1  GET http://web1/")
    assert main(["report", str(file), "-o", str(tmp_path / "none" / "r.html")]) == 2
    assert "none/r.html: cannot be written: No such file or directory" in capsys.readouterr().err
