"""Flags of `run`, `check` and `ab`. They are named as in ab, wrk, hey and oha if those agree."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from cockpit.cli import values
from cockpit.cli.flags import Flag, FlagSection, Switch, add_flags
from cockpit.cli.values import Sampling, count, factor, names, positive, sampling, seconds, statuses, workers
from cockpit.model.load.options import LOAD_OPTIONS
from cockpit.model.stacks import DEFAULT_HZ

SSH_CONFIG = Flag("--ssh-config", Path, "read FILE instead of ~/.ssh/config, as ssh -F does")
TRUST = (Flag("--trust", True, "accept the profile's commands, hosts and files without asking"), SSH_CONFIG)
# The output of a command as data; JSON_ONLY: of a command that otherwise has a screen.
JSON = Flag("--json", True, "print the result as JSON")
JSON_ONLY = Flag("--json", True, "print the result as JSON, show no screen")


def _options() -> Iterator[Flag]:
    for option in (option for option in LOAD_OPTIONS.values() if option.flags):
        kind = getattr(values, option.kind.parser) if option.kind.parser else Switch(not option.default)
        words = option.help or option.meaning.replace("`", "")
        yield Flag(option.flags, kind, words, option.kind.metavar, dest=option.name)


# Flags of the load plan. Without a flag the profile's value applies.
LOAD = (
    FlagSection(
        "load (a flag replaces the profile's value)",
        (
            *_options(),
            Flag("--poisson", True, "open load: random (Poisson) arrivals instead of evenly spaced ones"),
            Flag(
                "--replay-log", str, "open load: the GET and HEAD requests of an access log, at its intervals", "FILE"
            ),
            Flag("--speed", factor, "replay the log X times as fast (default 1)", "X", dest="replay_speed"),
            Flag(
                "--levels",
                str,
                "load levels, each for T, e.g. 1,2,4:30s, 500/s,1k/s:30s or 1,1:50,50:30s (with a ramp)",
                "LIST:T",
            ),
            Flag(
                "--think-time",
                str,
                "closed load: pause before the next request of a connection, e.g. 0.5s, '0.2s to 2s', '1s exponential'",
                "T",
            ),
            Flag("-w --workers", workers, "load processes; auto: one per CPU (default 1)", "N|auto"),
        ),
    ),
    FlagSection(
        "request",
        (
            Flag("--target", str, "load this URL instead of the profile's", "URL", dest="url"),
            Flag("-H --header", str, "request header; may be repeated", "'K: V'", many=True),
            Flag("-m --method", str, "request method (default GET, with a body POST)", "M"),
            Flag("-d --data", str, "request body", "TEXT"),
            Flag("-D --data-file", Path, "request body from a file"),
            Flag("-T --content-type", str, "Content-Type of the body", "TYPE"),
            Flag("-a --auth", str, "basic authentication", "USER:PASSWORD"),
            Flag(
                "--urls", str, "many paths: /img/{00001..15000}.jpg, or a file with one path per line", "PATTERN|FILE"
            ),
            Flag("--order", ("sequence", "shuffle", "once"), "order of paths", default="sequence"),
            Flag("--seed", count, "seed of a shuffle and of random arrivals", default="1"),
            Flag("--expect-status", statuses, "expected statuses, e.g. 200,204 (default below 400)", "LIST"),
            Flag("--expect-body", str, "count a response without this text as failed", "TEXT"),
        ),
    ),
    FlagSection(
        "connection",
        (
            Flag("--http", ("1.1", "2", "auto"), "version of HTTP (default 1.1); auto: the server chooses by ALPN"),
            Flag("--http2", Switch("2"), "as --http 2; without TLS h2c by prior knowledge", dest="http"),
            Flag("--connect-to", str, "connect to HOST:PORT instead of the URL's host", "HOST:PORT"),
            Flag("--unix-socket", str, "connect to this Unix socket", "PATH", dest="unix"),
            Flag("--local-address", str, "source address; may be repeated", "IP", many=True),
        ),
    ),
    FlagSection(
        "TLS",
        (
            Flag("--insecure", True, "do not verify the server's certificate"),
            Flag("--cacert", Path, "trust this CA instead of the system's"),
            Flag("--cert", Path, "client certificate (PEM)"),
            Flag("--key", Path, "private key of --cert (default: in the certificate's file)"),
            Flag("--sni", str, "server name to send (default: the URL's host)", "NAME"),
            Flag("--no-resumption", True, "a full handshake for each connection: resume no TLS session"),
        ),
    ),
)
AB = (
    Flag("url", str, metavar="http[s]://host[:port]/path"),
    Flag("-n", positive, "requests (default 1)", dest="requests"),
    Flag("-c", positive, "concurrent requests", dest="concurrency", default="1"),
    Flag("-t", seconds, "time limit; without -n also 50000 requests", "SECONDS", dest="timelimit"),
    Flag("-s", seconds, "timeout per response", "SECONDS", dest="timeout", default="30"),
    Flag("-k", True, "keep connections alive", dest="keepalive"),
    Flag("-m", str, "request method (default GET)", "METHOD", dest="method"),
    Flag("-H", str, "request header; may be repeated", "'K: V'", dest="header", many=True),
    Flag("-C", str, "cookie; may be repeated", "K=V", dest="cookie", many=True),
    Flag("-A", str, "basic authentication", "USER:PASSWORD", dest="auth"),
    Flag("-p", Path, "POST this file", dest="post"),
    Flag("-T", str, "type of the body", "TYPE", dest="content_type", default="text/plain"),
    Flag("-l", True, "accept responses of any length (always on)", dest="any_length"),
    Flag("-q", True, "show no progress on stderr", dest="quiet"),
    Flag("-r", True, "continue after socket errors (always on)", dest="resist"),
    Flag("-e", Path, "write percentiles as CSV", dest="csv"),
    Flag("-g", Path, "write one line per request as TSV", dest="gnuplot"),
)


def load_flags(target: str, about: str, record: str) -> tuple[Flag | FlagSection, ...]:
    """Return the flags of both `run` and `check`."""
    machines = (
        Flag("--generators", names, "load from these machines (ssh names), e.g. gen1,gen2", "LIST"),
        Flag("--cluster", str, "load from the workers of a Dask cluster, e.g. tls://scheduler:8786", "ADDRESS"),
    )
    output = (
        *TRUST,
        Flag("--record", Path, record),
        Flag("--hlog", Path, "write an HdrHistogram log, one interval per second"),
        JSON_ONLY,
        Flag(
            "--profile",
            sampling,
            f"profile the server's CPU on all hosts, with perf, e.g. 99 (default {DEFAULT_HZ}) or dwarf",
            "HZ",
            nargs="?",
            const=Sampling(DEFAULT_HZ),
        ),
    )
    return (
        Flag("target", str, about, target),
        *LOAD,
        FlagSection("load from other machines", machines),
        FlagSection("profile and output", output),
    )


@cache
def _without_flags() -> dict[str, tuple[str, Any]]:
    """Return the first name of each flag of the load plan, and its value if it is not given, by option name."""
    parser = argparse.ArgumentParser(add_help=False)
    names = {action.dest: action.option_strings[0] for _, action in reversed([*add_flags(parser, LOAD)])}
    return {name: (names[name], value) for name, value in vars(parser.parse_args([])).items()}


def given_flags(options: argparse.Namespace) -> dict[str, str]:
    """Return the given flags of the load plan by option name."""
    return {name: flag for name, (flag, value) in _without_flags().items() if getattr(options, name) != value}
