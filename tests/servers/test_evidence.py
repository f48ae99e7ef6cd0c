"""What a running server shows of a setting, compared with the value in its file; the programs run by a real sh."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from cockpit.servers.evidence import Evidence
from cockpit.servers.kind import ServerKind
from cockpit.servers.registry import KINDS, RELOADED, SETTINGS, SHOWN
from cockpit.tuning.scripts import LOGGED, SHOWN_BY

STOREDIR = """\
Store Directory Statistics:
Store Entries          : 53
Maximum Swap Size      : 51200 KB
Current Capacity       : 0.00% used, 100.00% free

Store Directory #0 (ufs): /var/spool/squid
First level subdirectories: 2
Second level subdirectories: 4
Maximum Size: 51200 KB
Current Size: 0.00 KB
Removal policy: heap

Store Directory #1 (rock): /srv/rock
Maximum Size: 1024 KB
"""
INFO = "\tStorage Mem size:\t220 KB\n\tStorage Mem capacity:\t 1.3% used, 98.7% free\n"
SHARED = "\nShared Memory Cache\nMaximum Size: 24576 KB\nCurrent Size: 0.00 KB 0.00%\n"


def output(evidence: Evidence, pages: Mapping[str, str], pid: int = 1) -> str:
    """Return the output of the program of a sign, with `pages` instead of a server."""
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
    evidence = SHOWN["squid"][name]
    assert output(evidence, pages) == shown
    assert {value: evidence.agrees(value, shown) for value in agrees} == agrees


def test_lengths_of_listen_queues_are_those_of_the_kernel() -> None:
    evidence = SHOWN["gunicorn"]["backlog"]
    most = int(Path("/proc/sys/net/core/somaxconn").read_text())
    with socket.create_server(("127.0.0.1", 0), backlog=7):
        shown = output(evidence, {}, os.getpid())
    assert shown == f"7 {most}"
    assert evidence.agrees("7", shown) and evidence.agrees("8", shown) is False
    assert evidence.agrees(str(most + 1), f"{most} {most}") and evidence.agrees("auto", shown) is None
    # Several sockets with lengths of their own.
    with socket.create_server(("127.0.0.1", 0), backlog=7), socket.create_server(("127.0.0.1", 0), backlog=9):
        assert output(evidence, {}, os.getpid()) == ""


def test_counts_agree_if_nothing_else_may_change_them() -> None:
    agrees = SHOWN["apache"]["maxrequestworkers"].agrees
    assert [agrees("35", shown) for shown in ("32 4", "36 4", "28 4", "35 1")] == [True, None, False, True]
    threads, children = SHOWN["apache"]["threadsperchild"], SHOWN["php-fpm"]["pm.max_children"]
    assert [threads.agrees("25", shown) for shown in ("25", "24", "30")] == [True, False, None]
    assert [children.agrees("5", shown) for shown in ("5", "6", "2")] == [True, False, None]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_settings_that_are_shown_are_known(kind: ServerKind) -> None:
    assert SHOWN.get(kind.name, {}).keys() <= SETTINGS.get(kind.name, {}).keys()


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
