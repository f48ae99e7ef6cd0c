"""`cockpit --spec` and `cockpit --man`: all commands and flags, as data and as a manual page."""

import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cockpit.autopilot.diagnosis import Bottleneck, BottleneckKind
from cockpit.cli.arguments import make_parser
from cockpit.cli.command_flags import SCHEMAS
from cockpit.cli.commands.schema import schema_of
from cockpit.metrics.values import RUN_METRICS
from cockpit.recording import library
from cockpit.report.encoding import to_json
from tests.cli.conftest import in_process, keyvalue
from tests.cli.test_help import flags


@pytest.fixture(scope="module")
def spec() -> dict[str, Any]:
    known: dict[str, Any] = json.loads(in_process("--spec").stdout)
    jsonschema.Draft202012Validator(schema_of("spec")).validate(known)
    return known


def test_spec_has_all_commands_flags_and_metrics(spec: dict[str, Any]) -> None:
    parser = make_parser()
    by_name = {command["name"]: command for command in spec["commands"]}
    assert {name.split()[0] for name in by_name} == set(parser.commands)
    for name, command in parser.commands.items():
        rows = [row for each, row in by_name.items() if each.split()[0] == name]
        names = {flag for row in rows for argument in row["arguments"] for flag in argument["names"]}
        assert {flag for flag in names if flag.startswith("-")} == set(flags(command)) - {"-h", "--help"}
    row = next(row for row in by_name["run"]["arguments"] if "-z" in row["names"])
    assert (row["value"], row["choices"], row["required"], row["repeated"]) == ("T", [], False, False)
    assert by_name["tune set"]["exits"] == [0, 2, 3, 5, 130] and spec["exits"]["5"] == "change refused or rolled back"
    assert {row["name"] for row in spec["metrics"] if row["of"] == "run"} == set(RUN_METRICS)
    assert all("%%" not in argument["help"] for row in by_name.values() for argument in row["arguments"])


def test_every_json_output_has_a_schema(spec: dict[str, Any]) -> None:
    named = {command["json_schema"] for command in spec["commands"]} - {None}
    assert named == set(SCHEMAS) - {"ndjson", "profile", "spec"}
    for name in SCHEMAS:
        jsonschema.Draft202012Validator.check_schema(schema_of(name))


def test_a_diagnosis_matches_its_schema() -> None:
    bottlenecks = json.loads(to_json([Bottleneck(BottleneckKind.CPU, "web1", "99%", ("Level",))]))
    jsonschema.Draft202012Validator(schema_of("autopilot")).validate(bottlenecks)


def test_outputs_match_their_schemas(file: str, tmp_path: Path) -> None:
    """`in_process` compares each output with its schema."""
    (tmp_path / "x.conf").write_text("X=1\n")
    profile = tmp_path / "p.toml"
    action = '[[action]]\nname = "act"\nhost = "web1"\ncommand = "true"\n'
    host = '[target]\nurl = "http://127.0.0.1:9/"\n[[host]]\nname = "web1"\n'
    profile.write_text(host + action + keyvalue("X", tmp_path / "x.conf"))
    actions = ("show", "set X=2 --no-probe", "history", "undo --no-probe", "action", "action act")
    commands = [("tune", "--trust", str(profile), *words.split()) for words in actions]
    commands += [("report", file), ("compare", f"{file}#1", f"{file}#1"), ("recordings", "list")]
    for command in commands:
        done = in_process(*command, "--json")
        assert done.returncode == 0 and done.stdout, done.stderr
    for words in (f"set spring {file}", f"add spring {file}", "show spring", "list", "delete spring"):
        assert in_process("baseline", *words.split(), "--json").stdout


def test_commands_that_change_files_list_them_as_json(file: str, tmp_path: Path) -> None:
    def changed(*words: str | Path) -> list[tuple[str, str]]:
        done = in_process(*words, "--json")
        assert done.returncode == 0, done.stderr
        rows: list[dict[str, Any]] = json.loads(done.stdout)
        assert all(row["size"] > 0 for row in rows)
        return [(row["action"], row["name"]) for row in rows]

    hey = tmp_path / "hey.csv"
    titles = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset"
    library.folder().mkdir(parents=True)
    hey.write_text(f"{titles}\n0.0100,0,0,0,0.0100,0,200,0.0000\n")
    assert changed("import", hey, "-o", library.folder() / "hey.cockpit") == [("wrote", "hey")]
    shutil.copy(file, library.folder() / "old.cockpit")
    assert changed("recordings", "rename", "old", "new") == [("renamed", "new")]
    would = [("would delete", "new"), ("would delete", "hey")]
    assert sorted(changed("recordings", "prune", "--keep", "0", "--dry-run")) == sorted(would)
    assert changed("recordings", "delete", "hey", "new") == [("deleted", "hey"), ("deleted", "new")]
    assert changed("recordings", "prune", "--keep", "0") == []
    assert changed("new", "http://127.0.0.1:9/", "-o", tmp_path / "n.toml") == [("wrote", "n")]


def test_manual_page_names_every_command_and_flag(spec: dict[str, Any]) -> None:
    page = in_process("--man").stdout
    for command in spec["commands"]:
        assert f"\n.SS {command['usage']}\n".replace("-", "\\-") in page
        for argument in command["arguments"]:
            assert argument["names"][-1].replace("-", "\\-") in page
    requests = {line.split()[0] for line in page.splitlines() if line.startswith((".", "'"))}
    assert requests == {".TH", ".SH", ".SS", ".B", ".BR", ".TP", ".PP", ".nf", ".fi"}
