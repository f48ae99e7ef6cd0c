"""Known settings: help line, accepted and refused values, what a running server shows; the registry of kinds."""

import os
import re
import socket
import subprocess
import tomllib
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import pytest

from cockpit.cli.commands.help import text
from cockpit.model.errors import ChangeRefused
from cockpit.model.host.samples import HostConfig, StatusPage
from cockpit.model.knobs import LIVE_KNOBS, Knob
from cockpit.model.status_metrics import PAGE_METRICS
from cockpit.profiles.knobs import NEEDS
from cockpit.profiles.writing import Draft, profile_text
from cockpit.servers import kernel, registry, systemd
from cockpit.servers.evidence import Evidence
from cockpit.servers.kind import CandidateKnob, ServerKind
from cockpit.servers.registry import RELOADED, SETTINGS
from cockpit.servers.settings import Impact
from cockpit.tuning import plan
from cockpit.tuning.discovery.servers import knob_of
from cockpit.tuning.files import HostFile, sha256
from cockpit.tuning.scripts import LOGGED, SHOWN_BY
from tests.data import data_of
from tests.servers.found import parsed

DATA = data_of(__file__)

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


@pytest.mark.parametrize(("kind", "name", "variable", "others"), DATA["only_variables_of_grammar_skip_form_check"])
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
    servers = filter(None, (kind.running(master, EVERYTHING) for master in EVERYTHING.masters(*kind.processes)))
    candidates = [candidate for server in servers for candidate in server.candidates]
    assert candidates
    settings = [candidate for candidate in candidates if not candidate.option]
    assert [candidate.name for candidate in settings if knob_of(candidate, "web1").known is None] == []


FOLDERS = sorted(path.parent.name for path in Path(registry.__file__).parent.glob("*/__init__.py"))


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_folder_is_registered(folder: str) -> None:
    module = import_module(f"cockpit.servers.{folder}")
    if folder in ("keyvalue", "systemd"):
        assert registry.GRAMMARS[folder] is module.GRAMMAR
    else:
        assert module.KIND in registry.KINDS


def test_kind_and_page_names_are_unique() -> None:
    names = [kind.name for kind in registry.KINDS]
    pages = [page.name for kind in registry.KINDS for page in kind.status]
    assert len(set(names)) == len(names) and len(set(pages)) == len(pages)


@pytest.mark.parametrize("page", registry.STATUS_PAGES.values(), ids=registry.STATUS_PAGES)
def test_each_page_has_metrics_help_and_hints(page: registry.StatusPageKind) -> None:
    assert not set(page.means) & set(page.rates)
    assert all(page.is_counter(name) for name in page.rates.values())
    assert not any(page.is_counter(name) for name in page.means.values())
    assert page.required and page.hint
    assert f"{page.name}.{next(iter({**page.means, **page.rates}))}" in PAGE_METRICS
    assert f"| `{page.name}` | `{page.url}` |" in text("hosts")
    assert StatusPage(kind=page.name, url="http://x/")


@pytest.mark.parametrize("kind", registry.KINDS, ids=[kind.name for kind in registry.KINDS])
def test_each_knob_kind_is_in_profiles_and_help(kind: ServerKind) -> None:
    for expression in (kind.failure, kind.correction, kind.chatter):
        re.compile(expression)
    if kind.grammar is not None:
        assert NEEDS[kind.name] == ("file", "directive", "test", "reload")
        assert f"`{kind.name}`" in text("knobs") and kind.name in text("profile")


STOREDIR = DATA["storedir"]
INFO = "\tStorage Mem size:\t220 KB\n\tStorage Mem capacity:\t 1.3% used, 98.7% free\n"
SHARED = "\nShared Memory Cache\nMaximum Size: 24576 KB\nCurrent Size: 0.00 KB 0.00%\n"


def evidence_output(evidence: Evidence, pages: Mapping[str, str], pid: int = 1) -> str:
    """Return the evidence_output of the program of a sign, with `pages` instead of a server."""
    cases = " ".join(f'{path}) printf %s "${name}" ;;' for name, path in _named(pages).items())
    environment = {"PATH": os.environ["PATH"], **{name: pages[path] for name, path in _named(pages).items()}}
    program = f"set -- {pid} 80 /dev/null ''\n{SHOWN_BY}page() {{ case $1 in {cases} esac; }}\n{evidence.command}"
    done = subprocess.run(["sh", "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert not done.stderr
    return " ".join(done.stdout.split())


def _named(pages: Mapping[str, str]) -> dict[str, str]:
    return {f"PAGE{number}": path for number, path in enumerate(pages)}


SQUID = {"/squid-internal-mgr/storedir": STOREDIR, "/squid-internal-mgr/info": INFO}
WITH_SHARED = SQUID | {"/squid-internal-mgr/storedir": STOREDIR + SHARED}


@pytest.mark.parametrize(
    ("name", "pages", "shown", "agrees"),
    [
        (
            "cache_mem",
            SQUID,
            "220 KB, 1.3% used",
            {"16 MB": True, "17 MB": True, "256 MB": False, "8 MB": False, "0": None},
        ),
        ("cache_mem", WITH_SHARED, "24576 KB", {"24 MB": True, "25 MB": False, "24576 KB": True, "much": None}),
        (
            "cache_dir",
            SQUID,
            "ufs /var/spool/squid 50 2 4,rock /srv/rock 1",
            {
                "ufs /var/spool/squid 50 2 4": True,
                "ufs /var/spool/squid 100 2 4": False,
                "aufs /var/spool/squid 50 2 4": False,
                "rock /srv/rock 1 slot-size=4096": True,
                "ufs": None,
            },
        ),
        ("cache_replacement_policy", SQUID, "heap", {"heap GDSF": True, "lru": False}),
        ("cache_mem", {}, "", {}),
        ("cache_dir", {}, "", {}),
    ],
)
def test_squid_by_its_cache_manager(
    name: str, pages: Mapping[str, str], shown: str, agrees: Mapping[str, bool | None]
) -> None:
    evidence = SETTINGS["squid"][name].shown
    assert evidence_output(evidence, pages) == shown
    assert {value: evidence.agrees(value, shown) for value in agrees} == agrees


def test_lengths_of_listen_queues_are_those_of_the_kernel() -> None:
    evidence = SETTINGS["gunicorn"]["backlog"].shown
    most = int(Path("/proc/sys/net/core/somaxconn").read_text())
    with socket.create_server(("127.0.0.1", 0), backlog=7):
        shown = evidence_output(evidence, {}, os.getpid())
    assert shown == f"7 {most}"
    assert evidence.agrees("7", shown) and evidence.agrees("8", shown) is False
    assert evidence.agrees(str(most + 1), f"{most} {most}") and evidence.agrees("auto", shown) is None
    # Several sockets with lengths of their own.
    with socket.create_server(("127.0.0.1", 0), backlog=7), socket.create_server(("127.0.0.1", 0), backlog=9):
        assert evidence_output(evidence, {}, os.getpid()) == ""


def test_counts_agree_if_nothing_else_may_change_them() -> None:
    agrees = SETTINGS["apache"]["maxrequestworkers"].shown.agrees
    assert [agrees("35", shown) for shown in ("32 4", "36 4", "28 4", "35 1")] == [True, None, False, True]
    threads, children = SETTINGS["apache"]["threadsperchild"].shown, SETTINGS["php-fpm"]["pm.max_children"].shown
    assert [threads.agrees("25", shown) for shown in ("25", "24", "30")] == [True, False, None]
    assert [children.agrees("5", shown) for shown in ("5", "6", "2")] == [True, False, None]


@pytest.mark.parametrize(
    ("kind", "line", "other"),
    [
        ("squid", "2026/11/25 22:00:25 kid1| Accepting HTTP Socket connections at conn12", "Reconfiguring Squid Cache"),
        ("lighttpd", "2026-11-25 22:00:25: (server.c.1704) server started (lighttpd/1.4.69)", "graceful shutdown"),
    ],
)
def test_time_of_the_last_reload_is_that_of_the_log(tmp_path: Path, kind: str, line: str, other: str) -> None:
    log = tmp_path / "error.log"
    with log.open("w") as file:
        file.write(f"{line.replace('22:00:25', '21:00:00')}\n{line}\n2026-11-25 23:00:00: {other}\n")
        file.flush()
        program = f"set -- {log} {os.getpid()} '{RELOADED[kind].pattern}'\n{LOGGED}"
        done = subprocess.run(["sh", "-c", program], capture_output=True, env={"TZ": "UTC", "PATH": os.environ["PATH"]})
    assert done.stdout.split() == [b"log", b"1795644025"]
    done = subprocess.run(["sh", "-c", program], capture_output=True, env={"TZ": "UTC", "PATH": os.environ["PATH"]})
    assert done.stdout.split() == [b"1795644025"]
