"""`cockpit completion`: what a shell must know to complete commands, flags, profiles, recordings and topics."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Iterator

from cockpit.cli.terminal import tell
from cockpit.cli.texts import topics
from cockpit.model.errors import EXIT_GOOD

_FOLDER = "${XDG_STATE_HOME:-$HOME/.local/state}/cockpit"
# By shell: profiles are files and the names of those in profiles/, recordings are files and names on the shelf.
_BASH = f"""
_cockpit_named() {{
  local found
  for found in "$1"/*"$2"; do
    [ -e "$found" ] && found="${{found##*/}}" && printf '%s\\n' "${{found%"$2"}}"
  done
}}
_cockpit_files() {{ compgen -d -S / -- "$1"; compgen -f -X "!*$2" -- "$1"; }}
_cockpit_profiles() {{ compgen -W "$(_cockpit_named profiles .toml)" -- "$1"; _cockpit_files "$1" .toml; }}
_cockpit_shelf() {{ compgen -W "$(_cockpit_named "{_FOLDER}/recordings" .cockpit)" -- "$1"; }}
_cockpit_recordings() {{ _cockpit_shelf "$1"; _cockpit_files "$1" .cockpit; }}
_cockpit_either() {{ _cockpit_profiles "$1"; _cockpit_recordings "$1"; }}
"""
_ZSH = f"""
_cockpit_profiles() {{ compadd -- profiles/*.toml(N:t:r); _files -g '*.toml' }}
_cockpit_shelf() {{ compadd -- {_FOLDER}/recordings/*.cockpit(N:t:r) }}
_cockpit_recordings() {{ _cockpit_shelf; _files -g '*.cockpit' }}
_cockpit_either() {{ _cockpit_profiles; _cockpit_recordings }}
"""
_FISH = """
function _cockpit_named
  for found in $argv[1]/*$argv[2]; string replace -r -- '.*/(.*)'$argv[2]'$' '$1' $found; end
end
function _cockpit_profiles; _cockpit_named profiles .toml; __fish_complete_suffix .toml; end
function _cockpit_shelf
  set -l state $XDG_STATE_HOME; test -n "$state"; or set state $HOME/.local/state
  _cockpit_named $state/cockpit/recordings .cockpit
end
function _cockpit_recordings; _cockpit_shelf; __fish_complete_suffix .cockpit; end
function _cockpit_either; _cockpit_profiles; _cockpit_recordings; end
"""
_HELPERS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
SHELLS = tuple(_HELPERS)
# What a positional of that name takes: command and name of the argument, or the name alone.
_TAKES = {
    "run target": "profiles",
    "check target": "either",
    "tune profile": "profiles",
    "study profile": "profiles",
    "replay file": "recordings",
    "report file": "recordings",
    "export file": "recordings",
    "compare before": "recordings",
    "compare after": "recordings",
    "baseline recording": "recordings",
    "recordings rename name": "shelf",
    "recordings delete names": "shelf",
}


def completion(options: Namespace) -> int:
    """The script for one shell."""
    import shtab

    from cockpit.cli.arguments import make_parser

    parser = make_parser()
    for path, action in _arguments(parser):
        name = f"{path} {action.dest}".strip()
        if name in _TAKES:
            function = f"_cockpit_{_TAKES[name]}"
            action.complete = {**dict.fromkeys(SHELLS, function), "fish": f"({function})"}  # type: ignore[attr-defined]
        elif name == "help topic":
            action.choices = list(topics())
        elif action.metavar in ("FILE", "DIR"):
            action.complete = shtab.FILE if action.metavar == "FILE" else shtab.DIRECTORY  # type: ignore[attr-defined]
    tell(shtab.complete(parser, shell=options.shell, preamble=_HELPERS[options.shell]))
    return EXIT_GOOD


def _arguments(parser: argparse.ArgumentParser, path: str = "") -> Iterator[tuple[str, argparse.Action]]:
    """Every argument with the command that it belongs to, as in `recordings rename`."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield from _arguments(command, f"{path} {name}".strip())
        else:
            yield path, action
