"""Subcommands and flags of `cockpit tune`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from cockpit.cli.load_arguments import SSH_CONFIG
from cockpit.cli.pages import TUNE, add_command
from cockpit.cli.values import positive, seconds, seed


def add_tune(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", metavar="PROFILE", help="a profile: its name, or a path such as ./x.toml")
    _add_shared(parser)
    actions = parser.add_subparsers(metavar="SUBCOMMAND", required=True, dest="action", prog=f"{parser.prog} PROFILE")
    commands = {name: add_command(actions, name, page) for name, page in TUNE.items()}
    for command in commands.values():
        _add_shared(command, default=argparse.SUPPRESS)

    commands["show"].add_argument("names", nargs="*", metavar="NAME", help="knobs (default: all)")

    add = commands["set"].add_argument
    add("names", nargs="+", metavar="NAME=VALUE", help="knobs and new values; several are one change")
    add("--dry-run", action="store_true", help="print the diff and its cost, change nothing")
    add("--confirm-within", type=seconds, metavar="T", help="roll back unless y is typed within T, e.g. 60s")
    _add_probe(commands["set"])

    add = commands["undo"].add_argument
    add("change", nargs="?", metavar="CHANGE", help="name from `history` (default: the newest that is applied)")
    _add_probe(commands["undo"])

    add = commands["rounds"].add_argument
    add("names", nargs="+", metavar="NAME=VALUE", help="knobs and new values")
    add("--rounds", type=positive, default=12, metavar="N", help="rounds at most, 4 to 50 (default 12)")
    add("--seconds", type=seconds, default=15.0, metavar="T", help="load per window, 15s or more (default 15s)")
    add("--seed", type=seed, default=1, metavar="N", help="seed of the random order (default 1)")
    add("--mirrored", action="store_true", help="order A-B-B-A instead of a random one")
    add("--keep", action="store_true", help="keep the new values unless they are worse (default: the old ones)")
    add(
        "--record",
        type=Path,
        metavar="FILE",
        help="record to a new FILE (default: to ~/.local/state/cockpit/recordings)",
    )
    add("--target", dest="url", metavar="URL", help="load this URL instead of the profile's")

    add = commands["action"].add_argument
    add("names", nargs="*", metavar="NAME", help="actions to run in this order (default: list all)")


def _add_shared(parser: argparse.ArgumentParser, **settings: Any) -> None:
    """Add the flags that may be given before and after the subcommand."""
    add = parser.add_argument
    add("--json", action="store_true", help="print the result as JSON", **settings)
    add("--ssh-config", type=Path, metavar="FILE", help=SSH_CONFIG, **settings)
    add(
        "--trust",
        action="store_true",
        help="accept the profile's commands, hosts and files without asking",
        **settings,
    )


def _add_probe(parser: argparse.ArgumentParser) -> None:
    """Add the flags for the requests that check the server before and after a change."""
    add = parser.add_argument
    add("--target", dest="url", metavar="URL", help="check the server with this URL instead of the profile's")
    add("--no-probe", action="store_true", help="send no requests to check the server before and after the change")
