"""Access logs in the configurations of servers, by the name and port of a request."""

from typing import Any

import pytest

from cockpit.servers.registry import GRAMMARS, SITES, TIMED_LOGS
from cockpit.servers.site_logs import logs_for
from tests.data import data_of


@pytest.mark.parametrize("case", data_of(__file__)["case"], ids=lambda case: case["kind"])
def test_logs_of_sites(case: dict[str, Any]) -> None:
    sites = SITES[case["kind"]](case["texts"], "/etc/x", {})
    for request in case["logs"]:
        logs = logs_for(sites, request["name"], request["port"])
        assert [f"{log.file} {log.format}" for log in logs] == request["files"], request["name"]


def test_variable_of_the_running_server() -> None:
    sites = SITES["apache"](["CustomLog ${APACHE_LOG_DIR}/a.log combined"], "/", {"APACHE_LOG_DIR": "/srv"})
    assert logs_for(sites, "", None)[0].file == "/srv/a.log"


@pytest.mark.parametrize("case", data_of(__file__)["timed"], ids=lambda case: case["id"])
def test_setting_that_logs_durations(case: dict[str, Any]) -> None:
    """The changed text has the log with a duration, and removing the added settings restores the text."""
    kind, files = case["kind"], case["files"]
    (log,) = logs_for(SITES[kind](files.values(), "/etc/x", {}), case.get("name", "a.example"), 80)
    timed = TIMED_LOGS[kind](files, "/etc/x", {}, log)
    if "changed" not in case:
        assert timed is None
        return
    assert timed is not None
    changed, olds = {file: text.encode() for file, text in files.items()}, []
    grammar = GRAMMARS[kind]
    for file, section, directive, value in timed.settings:
        known = grammar.read(changed[file], directive, section)
        olds.append(known.raw)
        assert not grammar.refusal(directive, value) and grammar.names.fullmatch(directive)
        raw = grammar.encode_in(changed[file], directive, section, value, known.raw)
        changed[file] = grammar.change(changed[file], directive, raw, section)
    ((file, text),) = [pair for pair in changed.items() if pair[1].decode() != files[pair[0]]]
    assert text.decode() == case["changed"]
    texts = {name: text.decode() for name, text in changed.items()}
    (again,) = logs_for(SITES[kind](texts.values(), "/etc/x", {}), case.get("name", "a.example"), 80)
    assert (again.file, again.format) == (log.file, timed.format) and TIMED_LOGS[kind](
        texts, "/etc/x", {}, again
    ) is None
    for (file, section, directive, _), old in zip(timed.settings, olds, strict=True):
        changed[file] = grammar.change(changed[file], directive, old, section)
    assert {name: text.decode() for name, text in changed.items()} == files
