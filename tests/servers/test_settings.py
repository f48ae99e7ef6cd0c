"""Known settings: help line, accepted and refused values."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from cockpit.model.errors import ChangeRefused
from cockpit.model.hosts import HostConfig
from cockpit.model.knobs import Knob
from cockpit.model.live_knobs import LIVE_KNOBS
from cockpit.profiles.writing import Draft, profile_text
from cockpit.servers import kernel, registry, systemd
from cockpit.servers.kind import CandidateKnob, ServerKind
from cockpit.servers.settings import Impact
from cockpit.tuning import plan
from cockpit.tuning.files import HostFile, sha256
from cockpit.tuning.server_discovery import knob_of
from tests.servers.found import parsed

# A host with all kinds of servers that have known settings, each in its packaged configuration.
EVERYTHING = parsed(Path(__file__).with_name("every_kind.txt").read_text())
WHEN = re.compile(r"; |\b(?:matters|counts|if|when)\b")
TABLES = registry.SETTINGS | {kind.name: kind.settings for kind in LIVE_KNOBS.values()}
EVERY = [(kind, name) for kind, table in TABLES.items() for name in table]


def knob(kind: str, directive: str, **given: str) -> Knob:
    return Knob(name=directive, host="web1", kind=kind, file="/etc/x.conf", directive=directive, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "name"), EVERY, ids=[f"{kind} {name}" for kind, name in EVERY])
def test_each_setting_has_help_line_and_form(kind: str, name: str) -> None:
    setting = TABLES[kind][name]
    assert 10 < len(setting.help) < 120 and "\n" not in setting.help and not setting.help.endswith(".")
    assert WHEN.search(setting.help), "the help line must state when the setting matters, or what a value costs"
    assert not setting.accepts("buffer=no such value")
    assert all(setting.accepts(value) for value in setting.form.choices)
    assert not setting.form.words.endswith(".")


VALUES = tomllib.loads(Path(__file__).with_name("values.toml").read_text())
FORMS = registry.SETTINGS | {"systemd": systemd.SETTINGS, "kernel": kernel.SETTINGS}


@pytest.mark.parametrize("kind", VALUES)
def test_values_are_checked_by_form(kind: str) -> None:
    for name, values in VALUES[kind].items():
        accepted = FORMS[kind][name].accepts
        assert [value for value in values["good"] if not accepted(value)] == [], name
        assert [value for value in values["bad"] if accepted(value)] == [], name


def test_value_of_wrong_form_is_refused_in_planning() -> None:
    data = b"events {}\nhttp { keepalive_timeout 65; }\n"
    timeout = knob("nginx", "keepalive_timeout", section="http {")
    found = plan.CurrentValues({timeout.file: HostFile("web1", timeout.file, timeout.file, data, sha256(data))}, {})
    with pytest.raises(ChangeRefused) as refused:
        plan.forward("web1", found, [(timeout, "abc")])
    assert str(refused.value) == "keepalive_timeout takes a time such as 65s, not 'abc'"
    assert plan.forward("web1", found, [(timeout, "30s")]).replacements
    assert plan.forward("web1", found, [(timeout, None)]).replacements


@pytest.mark.parametrize(
    ("kind", "name", "variable", "others"),
    [
        ("nginx", "keepalive_timeout", "$timeout", ("$", "a$b", "5$", "${a", "$a $b")),
        ("nginx", "keepalive_timeout", "${timeout}", ()),
        ("apache", "MaxRequestWorkers", "${WORKERS}", ("$WORKERS", "${WORKERS}0")),
        ("php-fpm", "pm.max_children", "${CHILDREN}", ("$CHILDREN", "${}")),
        ("php-fpm", "pm.max_children", "${CHILDREN:-5}", ()),
        ("haproxy", "maxconn", "", ("$MAX", "${MAX}")),
        ("lighttpd", "server.max-connections", "", ("$MAX", "${MAX}")),
        ("squid", "cache_mem", "", ("$MEM", "${MEM}")),
        ("caddy", "encode", "{$ENCODINGS}", ("{$A B}", "{env.ENCODINGS}", "{$A", "$A")),
        ("caddy", "idle", "{$IDLE:5m}", ("{$IDLE:5m 6m}",)),
        ("mariadb", "max_connections", "", ("$MAX", "${MAX}")),
        ("gunicorn", "workers", "", ("$N", "${N}")),
    ],
)
def test_only_variables_of_grammar_skip_form_check(
    kind: str, name: str, variable: str, others: tuple[str, ...]
) -> None:
    tested_knob = knob(kind, name)
    assert variable == "" or tested_knob.format_error(variable) == ""
    assert all(tested_knob.format_error(value) for value in others)


def test_startup_setting_needs_restart_and_unknown_settings_are_not_checked() -> None:
    assert knob("apache", "ServerLimit", reload="apachectl graceful").needs_restart
    assert not knob("apache", "ServerLimit", reload="service apache2 restart").needs_restart
    assert not knob("apache", "MaxRequestWorkers", reload="apachectl graceful").needs_restart
    assert registry.SETTINGS["lighttpd"]["server.port"].impact is Impact.RESTART
    unknown = knob("nginx", "client_max_body_size")
    assert unknown.known is None and unknown.format_error("anything") == "" and unknown.help == ""
    hidden = Knob(name="x", host="web1", kind="nginx", file="/x", directive="gzip", secret=True)
    assert hidden.format_error("hunter2") == "gzip takes on or off, not '(secret)'"


def test_draft_has_choices_and_help_line() -> None:
    offered = knob_of(CandidateKnob("gzip", "nginx", "/nginx.conf", directive="gzip", test="t", reload="r"), "web1")
    assert offered.values == ("on", "off")
    dotted = knob("lighttpd", "server.max-connections", test="t", reload="r")
    hosts = (HostConfig(name="web1"),)
    text = profile_text(Draft(url="http://web1/", hosts=hosts, knobs=(offered, dotted)))
    assert f"\n# {offered.help}\n[[knob]]\n" in text and 'name = "server.max-connections"' in text


@pytest.mark.parametrize("kind", [kind for kind in registry.KINDS if kind.settings], ids=lambda kind: kind.name)
def test_every_candidate_is_known_setting(kind: ServerKind) -> None:
    candidates = [candidate for server in kind.discover(EVERYTHING) for candidate in server.candidates]
    assert candidates
    settings = [candidate for candidate in candidates if not candidate.option]
    assert [candidate.name for candidate in settings if knob_of(candidate, "web1").known is None] == []
