"""Flags of `run`, `check` and `ab`. They are named as in ab, wrk, hey and oha if those agree."""

from __future__ import annotations

import argparse
from functools import cache
from pathlib import Path
from typing import Any

from cockpit.cli import values
from cockpit.cli.flags import FlagGroup
from cockpit.cli.values import Sampling, count, factor, names, positive, sampling, seconds, statuses, workers
from cockpit.model.load.options import LOAD_OPTIONS
from cockpit.model.stacks import DEFAULT_HZ


def add_load(parser: argparse.ArgumentParser, target: str, about: str, record: str) -> None:
    """Add the flags of both `run` and `check`. Without a flag the profile's value applies."""
    parser.add_argument("target", metavar=target, help=about)
    add_load_flags(parser)
    add = parser.add_argument_group("load from other machines").add_argument
    add("--generators", metavar="LIST", type=names, help="load from these machines (ssh names), e.g. gen1,gen2")
    add("--cluster", metavar="ADDRESS", help="load from the workers of a Dask cluster, e.g. tls://scheduler:8786")
    output = parser.add_argument_group("profile and output")
    add_trust(output)
    add = output.add_argument
    add("--record", type=Path, metavar="FILE", help=record)
    add("--hlog", type=Path, metavar="FILE", help="write an HdrHistogram log, one interval per second")
    add("--json", action="store_true", help="print the result as JSON, show no screen")
    add(
        "--profile",
        nargs="?",
        type=sampling,
        const=Sampling(DEFAULT_HZ),
        metavar="HZ",
        help=f"profile the server's CPU on all hosts, with perf, e.g. 99 (default {DEFAULT_HZ}) or dwarf",
    )


def add_load_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the load plan."""
    _add_amount(parser.add_argument_group("load (a flag replaces the profile's value)"))
    _add_request(parser.add_argument_group("request"))
    _add_connection(parser.add_argument_group("connection"))
    _add_tls(parser.add_argument_group("TLS"))


@cache
def _load_flags() -> tuple[argparse.Action, ...]:
    parser = argparse.ArgumentParser(add_help=False)
    add_load_flags(parser)
    return tuple(parser._actions)


def given_flags(options: argparse.Namespace) -> dict[str, str]:
    """Return the given flags of the load plan by option name."""
    actions = [action for action in _load_flags() if getattr(options, action.dest) != action.default]
    return {action.dest: action.option_strings[0] for action in actions}


def add_trust(group: FlagGroup, **settings: Any) -> None:
    """Add --trust and --ssh-config."""
    words = "accept the profile's commands, hosts and files without asking"
    group.add_argument("--trust", action="store_true", help=words, **settings)
    add_ssh_config(group, **settings)


def add_ssh_config(group: FlagGroup, **settings: Any) -> None:
    words = "read FILE instead of ~/.ssh/config, as ssh -F does"
    group.add_argument("--ssh-config", type=Path, metavar="FILE", help=words, **settings)


def _add_amount(group: argparse._ArgumentGroup) -> None:
    for option in (option for option in LOAD_OPTIONS.values() if option.flags):
        about: dict[str, Any] = {"dest": option.name, "help": option.help or option.meaning.replace("`", "")}
        if option.kind.parser:
            parse = getattr(values, option.kind.parser)
            group.add_argument(*option.flags.split(), type=parse, metavar=option.kind.metavar, **about)
        else:
            action = "store_false" if option.default else "store_true"
            group.add_argument(*option.flags.split(), action=action, default=None, **about)
    add = group.add_argument
    add("--poisson", action="store_true", help="open load: random (Poisson) arrivals instead of evenly spaced ones")
    add("--replay-log", metavar="FILE", help="open load: the GET and HEAD requests of an access log, at its intervals")
    add("--speed", dest="replay_speed", type=factor, metavar="X", help="replay the log X times as fast (default 1)")
    add(
        "--levels",
        metavar="LIST:T",
        help="load levels, each for T, e.g. 1,2,4:30s, 500/s,1k/s:30s or 1,1:50,50:30s (with a ramp)",
    )
    add(
        "--think-time",
        metavar="T",
        help="closed load: pause before the next request of a connection, e.g. 0.5s, '0.2s to 2s', '1s exponential'",
    )
    add("-w", "--workers", type=workers, metavar="N|auto", help="load processes; auto: one per CPU (default 1)")


def _add_request(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--target", dest="url", metavar="URL", help="load this URL instead of the profile's")
    add("-H", "--header", action="append", default=[], metavar="'K: V'", help="request header; may be repeated")
    add("-m", "--method", metavar="M", help="request method (default GET, with a body POST)")
    add("-d", "--data", metavar="TEXT", help="request body")
    add("-D", "--data-file", type=Path, metavar="FILE", help="request body from a file")
    add("-T", "--content-type", metavar="TYPE", help="Content-Type of the body")
    add("-a", "--auth", metavar="USER:PASSWORD", help="basic authentication")
    add("--urls", metavar="PATTERN|FILE", help="many paths: /img/{00001..15000}.jpg, or a file with one path per line")
    add(
        "--order",
        choices=("sequence", "shuffle", "once"),
        default="sequence",
        help="order of paths (default sequence)",
    )
    add("--seed", type=count, default=1, metavar="N", help="seed of a shuffle and of random arrivals (default 1)")
    add(
        "--expect-status",
        type=statuses,
        metavar="LIST",
        help="expected statuses, e.g. 200,204 (default below 400)",
    )
    add("--expect-body", metavar="TEXT", help="count a response without this text as failed")


def _add_connection(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--http", choices=("1.1", "2", "auto"), help="version of HTTP (default 1.1); auto: the server chooses by ALPN")
    add(
        "--http2",
        dest="http",
        action="store_const",
        const="2",
        help="as --http 2; without TLS h2c by prior knowledge",
    )
    add("--connect-to", metavar="HOST:PORT", help="connect to HOST:PORT instead of the URL's host")
    add("--unix-socket", dest="unix", metavar="PATH", help="connect to this Unix socket")
    add("--local-address", action="append", default=[], metavar="IP", help="source address; may be repeated")


def _add_tls(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--insecure", action="store_true", help="do not verify the server's certificate")
    add("--cacert", type=Path, metavar="FILE", help="trust this CA instead of the system's")
    add("--cert", type=Path, metavar="FILE", help="client certificate (PEM)")
    add("--key", type=Path, metavar="FILE", help="private key of --cert (default: in the certificate's file)")
    add("--sni", metavar="NAME", help="server name to send (default: the URL's host)")
    add("--no-resumption", action="store_true", help="a full handshake for each connection: resume no TLS session")


def add_ab(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("url", metavar="http[s]://host[:port]/path")
    add("-n", dest="requests", type=positive, metavar="N", help="requests (default 1)")
    add("-c", dest="concurrency", type=positive, default=1, metavar="N", help="concurrent requests (default 1)")
    add("-t", dest="timelimit", type=seconds, metavar="SECONDS", help="time limit; without -n also 50000 requests")
    add("-s", dest="timeout", type=seconds, default=30.0, metavar="SECONDS", help="timeout per response (default 30)")
    add("-k", dest="keepalive", action="store_true", help="keep connections alive")
    add("-m", dest="method", metavar="METHOD", help="request method (default GET)")
    add("-H", dest="header", action="append", default=[], metavar="'K: V'", help="request header; may be repeated")
    add("-C", dest="cookie", action="append", default=[], metavar="K=V", help="cookie; may be repeated")
    add("-A", dest="auth", metavar="USER:PASSWORD", help="basic authentication")
    add("-p", dest="post", type=Path, metavar="FILE", help="POST this file")
    add("-T", dest="content_type", default="text/plain", metavar="TYPE", help="type of the body (default text/plain)")
    add("-l", dest="any_length", action="store_true", help="accept responses of any length (always on)")
    add("-q", dest="quiet", action="store_true", help="show no progress on stderr")
    add("-r", dest="resist", action="store_true", help="continue after socket errors (always on)")
    add("-e", dest="csv", type=Path, metavar="FILE", help="write percentiles as CSV")
    add("-g", dest="gnuplot", type=Path, metavar="FILE", help="write one line per request as TSV")
