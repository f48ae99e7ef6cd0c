"""`python -m tests.lab.searches [--budget TIME] [NAME...]`: searches on real servers of a lab with CPU quotas.

Each search ends in a claim. A separate `cockpit tune rounds` measures the same change: both intervals must overlap.
Exit status 1: a search failed, or the intervals do not overlap.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.data import data_of
from tests.lab import quotas
from tests.lab.keeper import REPOSITORY
from tests.lab.lab import Lab

DATA = data_of(__file__)

_PROFILE = DATA["profile"]
_APACHE = {"test": "apachectl -t", "reload": "apachectl graceful", "file": "/etc/apache2/apache2.conf"}
_PREFORK = _APACHE | {"file": "/etc/apache2/mods-available/mpm_prefork.conf"}
_NGINX = {"kind": "nginx", "test": "nginx -t", "reload": "nginx -s reload", "file": "/etc/nginx/nginx.conf"}
_NGINX |= {"section": "http {"}
_FPM = {"kind": "php-fpm", "test": "php-fpm8.2 -t", "reload": "service php8.2-fpm reload", "section": "www"}
_FPM |= {"file": "/etc/php/8.2/fpm/pool.d/www.conf"}
# A page that sleeps like a database query and computes a little.
_WORK = "<?php usleep(20000); for ($i = 0, $x = 0; $i < 2000; $i++) { $x += sqrt($i); } echo round($x);"
_START_NGINX = DATA["start_nginx"]


class Case(NamedTuple):
    """A search: its profile (name or text), the command that starts its server, and its flags."""

    profile: str
    start: str
    flags: tuple[str, ...]


def _profile(page: str, concurrency: int, processes: list[str], **knobs: dict[str, str]) -> str:
    text = _PROFILE.format(page=page, concurrency=concurrency, processes=json.dumps(processes))
    for name, values in knobs.items():
        fields = {"name": name, "host": "web1", "directive": name} | values
        text += "[[knob]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in fields.items())
    return text


def _flags(**ranges: str) -> tuple[str, ...]:
    return (
        *(word for name, values in ranges.items() for word in ("--knob", f"{name}={values}")),
        "--where",
        "failed == 0",
    )


CASES = {
    "apache": Case(
        _profile(
            *("/hello.html", 8, ["apache2"]), KeepAlive=_APACHE, MaxKeepAliveRequests=_APACHE, MaxSpareServers=_PREFORK
        ),
        "sed -i 's/^KeepAlive .*/KeepAlive Off/' /etc/apache2/apache2.conf && service apache2 restart",
        _flags(KeepAlive="On,Off", MaxKeepAliveRequests="10..500", MaxSpareServers="10..60"),
    ),
    # Apache stalls for seconds here: a claim is hard to prove.
    "apache-stalls": Case(
        "spare-servers",
        "",
        _flags(MinSpareServers="2..30", MaxSpareServers="10..60", MaxConnectionsPerChild="20..2000,0"),
    ),
    "nginx": Case(
        _profile(":8081/big.txt", 40, ["nginx"], gzip=_NGINX, gzip_comp_level=_NGINX, sendfile=_NGINX),
        _START_NGINX,
        _flags(gzip="on,off", gzip_comp_level="1..9", sendfile="on,off"),
    ),
    "php-fpm": Case(
        _profile(":8082/work.php", 24, ["php-fpm*", "nginx"], **{"pm.max_children": _FPM, "pm": _FPM}),
        f"printf %s '{_WORK}' >/var/www/html/work.php\nservice php8.2-fpm start\n{_START_NGINX}",
        _flags(**{"pm.max_children": "1..40", "pm": "static,ondemand"}),
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.searches")
    parser.add_argument("--budget", default="12m", metavar="TIME")
    parser.add_argument("names", nargs="*", choices=[*CASES, []], help=f"searches (default all): {', '.join(CASES)}")
    options = parser.parse_args()
    agreed = []
    with Lab.start("web1", share=quotas.SHARE) as lab, tempfile.TemporaryDirectory() as folder:
        print(f"lab: {lab.cpus}")
        for name in options.names or CASES:
            print(f"=== {name}")
            agreed.append(_searched(lab, CASES[name], Path(folder) / f"{name}.toml", options.budget))
    return int(not all(agreed))


def _searched(lab: Lab, case: Case, file: Path, budget: str) -> bool:
    """Search, measure the proposed change by rounds, and return whether both intervals overlap."""
    profile = case.profile
    if "\n" in profile:
        file.write_text(profile)
        profile = str(file)
    if case.start:
        lab.web1.run(case.start)
    begun = time.monotonic()
    found = _cockpit(lab, "autopilot", profile, *case.flags, "--budget", budget, "--no-tui", "--seed", "1")
    if found is None:
        return False
    minutes = (time.monotonic() - begun) / 60
    print(f"{found['outcome']}: {found['values']} {found['detail']}")
    print(f"{len(found['evaluations'])} evaluations, {minutes:.0f} min")
    if not found["values"]:
        return True
    changed = [f"{name}={value}" for name, value in found["values"].items() if value != found["original"][name]]
    rounds = _cockpit(lab, "tune", profile, "rounds", *changed, "--seed", "2")
    claimed, measured = (_interval(verdict) for verdict in (found["verdict"], rounds))
    print(f"rate, claimed {_words(claimed)}, by rounds {_words(measured)}")
    return claimed is not None and measured is not None and claimed[0] <= measured[1] and measured[0] <= claimed[1]


def _cockpit(lab: Lab, command: str, *arguments: str) -> dict[str, Any] | None:
    """Run a command on the generator's CPU; return its JSON, None if it failed. Progress goes to stderr."""
    command_line = [sys.executable, "-m", "cockpit", command, *arguments, "--trust", "--json"]
    command_line += ["--ssh-config", str(lab.ssh_config)]
    done = subprocess.run(
        lab.as_generator(command_line), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
    )
    if done.returncode:
        return None
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _interval(verdict: dict[str, Any] | None) -> tuple[float, float] | None:
    """Return the interval of the rate; None if it is unknown."""
    effects = [] if verdict is None else verdict["effects"]
    ends = [(effect["low"], effect["high"]) for effect in effects if effect["metric"] == "rate"]
    return ends[0] if ends and None not in ends[0] else None


def _words(interval: tuple[float, float] | None) -> str:
    return "unknown" if interval is None else f"{interval[0]:+.0%} to {interval[1]:+.0%}"


if __name__ == "__main__":
    sys.exit(main())
