"""`cockpit help` and the README: topics, help pages, examples and schema agree with the program; links exist."""

import argparse
import contextlib
import re
import shlex
import sqlite3
import tomllib
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cockpit.analysis.thresholds import is_time, known_metrics, parse_threshold
from cockpit.cli import main
from cockpit.cli.arguments import make_parser
from cockpit.cli.command_help import BASELINE, GROUPS, RECORDINGS, TUNE
from cockpit.cli.commands.help import profile_keys, text, topics
from cockpit.cli.commands.schema import profile_schema
from cockpit.cli.parser import CommandParser, join_time_values
from cockpit.model import errors
from cockpit.profiles.sections import ProfileFile
from cockpit.servers.registry import AT_START
from tests.data import data_of
from tests.recording.test_pages import record_pages
from tests.session.events import small_session

DATA = data_of(__file__)

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
FOLDERS = ("tests", "screenshots", "profiles")
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", *(f"{folder}/README.md" for folder in FOLDERS))
SHIPPED = sorted((ROOT / "profiles").glob("*.toml"))


def test_topics_and_usage_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help"]) == 0
    output = capsys.readouterr().out
    for name in ("profile", "knobs", "expressions", "exit-codes", "studies"):
        assert re.search(rf"^  {name} +\w", output, re.MULTILINE)
    assert all(title for title in topics().values())
    assert main(["help", "exit-codes"]) == 0
    assert capsys.readouterr().out == text("exit-codes")
    assert main(["help", "run"]) == 0
    assert "usage: cockpit run " in capsys.readouterr().out


@pytest.mark.parametrize("words", [("rounds", "--help"), ("spare-servers", "rounds", "-h")])
def test_help_of_a_subcommand_needs_no_profile(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["tune", *words])
    assert "usage: cockpit tune PROFILE rounds [OPTIONS] NAME=VALUE" in capsys.readouterr().out


def test_unknown_topic_is_one_line_with_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    for topic, message in (
        ("profil", "'profil': unknown topic; did you mean profile? topics: agents, "),
        ("exit-code", "did you mean exit-codes? "),
        ("zzzz", "'zzzz': unknown topic; topics: agents, "),
    ):
        assert main(["help", topic]) == 2
        output = capsys.readouterr()
        assert message in output.err and output.err.count("\n") == 1 and output.out == ""


def test_queries_in_recording_format_return_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = text("recording-format")
    record_pages(tmp_path / "s.cockpit", list(small_session()), monkeypatch)
    database = sqlite3.connect(tmp_path / "s.cockpit")
    queries = re.findall(r'^    sqlite3 s\.cockpit "(.*)"$', topic, re.MULTILINE)
    assert len(queries) == 5
    for query in queries:
        assert database.execute(query.replace("BETWEEN 60 AND 90", "BETWEEN 5 AND 9")).fetchall(), query
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    database.close()
    for name in tables:
        assert re.search(rf"^\|.*`{name}", topic, re.MULTILINE), name


def leaves(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield every (section, key) of the schema."""
    for name, section in schema["$defs"].items():
        for key in section["properties"]:
            yield name, key


def test_help_lists_exactly_the_profile_keys() -> None:
    """Each key has a description from help; help has no row without a key."""
    found = profile_schema()
    for section, key in leaves(found):
        assert found["$defs"][section]["properties"][key].get("description"), f"{section}.{key} is not in the help"
    named = [(table, key) for table, key, _ in profile_keys()]
    assert len(named) == len(set(named)) == len(list(leaves(found)))
    topic = text("profile")
    for section in ProfileFile.__struct_fields__:
        assert f"`{section}`" in topic


def test_metrics_in_help_exist() -> None:
    of_load, of_hosts = text("expressions").split("Metrics of a host")
    cells = re.compile(r"^\| (`[^|]*) \|", re.MULTILINE)
    named = [re.findall(r"`([^`]+)`", " ".join(cells.findall(part))) for part in (of_load, of_hosts)]
    assert len(named[0]) > 10 and len(named[1]) > 40
    for name in (*named[0], *(f"web1.{metric}" for metric in named[1])):
        parse_threshold(f"{name} < {'5ms' if is_time(name) else 5}")
    known = {name.removeprefix("HOST.") for name in known_metrics()}
    groups = ("cpu.", "io.tps", "load.", "processes.", "memory.used", "memory.available", "coverage")
    unloaded = {name for name in known if ".before." in name or ".after." in name}
    required = {name for name in known - unloaded if name.startswith(groups)}
    assert required | {"rate", "completed", "sent", "failed", "errors"} <= set(named[0]) | set(named[1])


def test_every_command_in_topics_help_pages_and_readme_parses() -> None:
    """Example commands parse as a shell would split them."""
    parser = make_parser()
    pages = [each.format_help() for each in parsers(parser)]
    lines = [line for page in (*map(text, topics()), *pages, README) for line in page.splitlines()]
    examples = [line for line in lines if re.match(r" {2,4}cockpit [a-z]", line) and "COMMAND" not in line]
    assert len(examples) > 60 and any(line in README for line in examples)
    for line in examples:
        arguments = [word for word in shlex.split(line, comments=True)[1:] if not word.startswith(">")]
        parser.parse_args(join_time_values(arguments))
        assert not re.search(r"(?<!-o) [^ /=]*\.toml\b", " ".join(arguments)), f"{line}: a file needs a path"


@pytest.mark.parametrize("command", ["tune", "recordings", "baseline"])
def test_subcommands_have_help_pages(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Also `tune` without the profile before its subcommand."""
    for name, parser in make_parser().commands[command].commands.items():
        profile = ["x"] if command == "tune" else []
        for typed in ([command, name, "--help"], [command, *profile, name, "-h"], ["help", command, name]):
            with contextlib.suppress(SystemExit):
                main(typed)
            assert capsys.readouterr().out == parser.format_help()


def test_help_lists_every_command_in_a_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "help"]) == 0
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    for group in ("Measure", "Tune", "Analyze", "Set up"):
        assert f"\n{group}:\n" in shown
    in_readme = set(re.findall(r"^\| `cockpit ([a-z]+)", README, re.MULTILINE))
    for named in (set(re.findall(r"^  ([a-z]+)  ", shown, re.MULTILINE)), in_readme):
        assert named | {"start"} == set(make_parser().commands)


def test_pages_have_sentence_exit_codes_and_summary() -> None:
    for parser in parsers(make_parser()):
        if parser.prog != "cockpit":
            page = parser.format_help()
            assert re.search(r"^[A-Z][^\n]+(\n[^\n]+)*\.$", page, re.MULTILINE), parser.prog
            assert "exit codes: 0 success" in page
            assert max(map(len, page.splitlines())) <= 80, parser.prog
    for pages in (*GROUPS.values(), TUNE, BASELINE, RECORDINGS):
        for page in pages.values():
            assert len(page.summary) <= 50 and page.summary[0].islower()
    codes = {value for name, value in vars(errors).items() if name.startswith("EXIT_")}
    codes |= {value.exit_code for value in vars(errors).values() if hasattr(value, "exit_code")}
    named = {int(code) for code in re.findall(r"^\| (\d+) \|", text("exit-codes"), re.MULTILINE)}
    assert codes <= named


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_profiles_match_schema(path: Path) -> None:
    jsonschema.Draft202012Validator(profile_schema()).validate(tomllib.loads(path.read_text()))
    assert path.read_text().startswith("#:schema ./profile.schema.json\n")


def test_shipped_schema_is_current_and_refuses_invalid_profiles(capsys: pytest.CaptureFixture[str]) -> None:
    validator = jsonschema.Draft202012Validator(profile_schema())
    jsonschema.Draft202012Validator.check_schema(profile_schema())
    valid = tomllib.loads(SHIPPED[0].read_text())
    assert validator.is_valid(valid)
    for table, key, value in (("load", "concurency", 2), ("load", "concurrency", 0), ("target", "order", "x")):
        assert not validator.is_valid(valid | {table: valid[table] | {key: value}})
    assert not validator.is_valid({"load": {}})
    assert main(["schema", "profile"]) == 0
    output = capsys.readouterr().out
    # Update it with `cockpit schema profile >profiles/profile.schema.json`.
    assert (ROOT / "profiles" / "profile.schema.json").read_text() == output


def test_flags_in_help_exist() -> None:
    known = set(flags(make_parser()))
    server_options = {option for settings in AT_START.values() for setting in settings for option in setting.options}
    assert {"--ssh-config", "--theme"} <= known
    for topic in topics():
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text(topic)))
        assert named <= known | server_options, topic


@pytest.mark.parametrize("page", PAGES)
def test_links_and_pictures_exist(page: str) -> None:
    text = (ROOT / page).read_text()
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in link]
    assert [link for link in links if not ((ROOT / page).parent / link).exists()] == []


def test_readme_links_topics_and_gallery_pictures() -> None:
    assert set(re.findall(r"/topics/([a-z-]+)\.md", README)) == set(topics())
    gallery = (ROOT / "screenshots" / "README.md").read_text()
    names = {path.stem for path in (ROOT / "screenshots").iterdir() if path.suffix in (".svg", ".png")}
    assert {name for name in names if f"({name}." not in gallery} == set()


def parsers(parser: CommandParser) -> Iterator[CommandParser]:
    """Yield the parser and the parsers of all its commands."""
    yield parser
    for command in parser.commands.values():
        yield from parsers(command)


def flags(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the flags of a command and of all its subcommands."""
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from flags(command)


# Command lines as groups of arguments that stay together.
LINES = DATA["lines"]


@pytest.mark.parametrize("line", LINES, ids=[line[0] for line in LINES])
def test_flags_and_arguments_in_any_order(line: tuple[str | tuple[str, ...], ...]) -> None:
    command, *pieces = line
    names = [piece for piece in pieces if not piece[0].startswith("-")]
    seen = set()
    for order in permutations(pieces):
        if [piece for piece in order if piece in names] != names:
            continue
        arguments = [*str(command).split(), *(word for piece in order for word in piece)]
        options = vars(make_parser().parse_args(arguments))
        options.pop("command")
        seen.add(str(sorted(options.items())))
    assert len(seen) == 1
    for name in (word for piece in names for word in piece):
        assert name in next(iter(seen))
