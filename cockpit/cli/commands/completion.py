"""`cockpit completion`: scripts that complete commands, flags, profiles, recordings and topics."""

from __future__ import annotations

import shlex
from argparse import Action, Namespace
from collections.abc import Iterator

from cockpit import DISTRIBUTION
from cockpit.cli.commands.help import topics
from cockpit.cli.parser import CommandParser
from cockpit.cli.terminal import emit
from cockpit.model.errors import EXIT_GOOD
from cockpit.profiles.catalogue import own_folder, shipped_folder
from cockpit.recording import library

# Profiles and recordings are completed by path, and by their name in cockpit's folders.
# bash expands the words of `compgen -W`, and inserts unquoted words unless a function's name has `_file`.
_BASH = """
_cockpit_named() {
  local word=$1 ending=$2 folder found
  shift 2
  for folder in "$@"; do
    for found in "$folder"/"$word"*"$ending"; do
      [ -e "$found" ] && found="${found##*/}" && printf '%s\\n' "${found%"$ending"}"
    done
  done
}
_cockpit_files() { compgen -d -S / -- "$1"; compgen -f -X "!*$2" -- "$1"; }
_cockpit_file_profiles() { _cockpit_named "$1" .toml PROFILES; _cockpit_files "$1" .toml; }
_cockpit_file_library() { _cockpit_named "$1" .cockpit LIBRARY; }
_cockpit_file_recordings() { _cockpit_file_library "$1"; _cockpit_files "$1" .cockpit; }
_cockpit_file_either() { _cockpit_file_profiles "$1"; _cockpit_file_recordings "$1"; }
"""
_ZSH = """
_cockpit_named() {
  local ending=$1 folder
  shift
  for folder in "$@"; do compadd -- $folder/*$ending(N:t:r); done
}
_cockpit_file_profiles() { _cockpit_named .toml PROFILES; _files -g '*.toml' }
_cockpit_file_library() { _cockpit_named .cockpit LIBRARY }
_cockpit_file_recordings() { _cockpit_file_library; _files -g '*.cockpit' }
_cockpit_file_either() { _cockpit_file_profiles; _cockpit_file_recordings }
"""
_FISH = """
function _cockpit_named -a ending
  for folder in $argv[2..]
    for found in $folder/*$ending; string replace -r '.*/(.*)'$ending'$' '$1' -- $found; end
  end
end
function _cockpit_file_profiles; _cockpit_named .toml PROFILES; __fish_complete_suffix .toml; end
function _cockpit_file_library; _cockpit_named .cockpit LIBRARY; end
function _cockpit_file_recordings; _cockpit_file_library; __fish_complete_suffix .cockpit; end
function _cockpit_file_either; _cockpit_file_profiles; _cockpit_file_recordings; end
"""
_HELPERS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
# The command's other name is completed in the same way.
_ALIASES = {
    "bash": f"complete -o bashdefault -F _shtab_cockpit {DISTRIBUTION}",
    "zsh": f"compdef _shtab_cockpit {DISTRIBUTION}",
    "fish": f"complete -c {DISTRIBUTION} -w cockpit",
}
SHELLS = tuple(_HELPERS)
# Completions by command and argument.
_TAKES = {
    "run target": "profiles",
    "check target": "either",
    "tune profile": "profiles",
    "study profile": "profiles",
    "doctor profile": "profiles",
    "replay file": "recordings",
    "report file": "recordings",
    "export file": "recordings",
    "compare before": "recordings",
    "compare after": "recordings",
    "baseline set recording": "recordings",
    "baseline add recording": "recordings",
    "recordings rename name": "library",
    "recordings delete names": "library",
}


def completion(options: Namespace) -> int:
    import shtab

    from cockpit.cli.arguments import make_parser

    parser = make_parser()
    for path, action in _arguments(parser):
        name = f"{path} {action.dest}".strip()
        if name in _TAKES:
            function = f"_cockpit_file_{_TAKES[name]}"
            action.complete = {**dict.fromkeys(SHELLS, function), "fish": f"({function})"}  # type: ignore[attr-defined]
        elif name == "help topic":
            action.choices = list(topics())
        elif action.metavar in ("FILE", "DIR"):
            action.complete = shtab.FILE if action.metavar == "FILE" else shtab.DIRECTORY  # type: ignore[attr-defined]
    emit(shtab.complete(parser, shell=options.shell, preamble=_helpers(options.shell)) + f"\n{_ALIASES[options.shell]}")
    return EXIT_GOOD


def _helpers(shell: str) -> str:
    folders = (own_folder(), shipped_folder())
    profiles = " ".join(shlex.quote(str(folder)) for folder in folders if folder)
    return _HELPERS[shell].replace("PROFILES", profiles).replace("LIBRARY", shlex.quote(str(library.folder())))


def _arguments(parser: CommandParser, path: str = "") -> Iterator[tuple[str, Action]]:
    """Yield every argument with its command, e.g. `recordings rename`."""
    yield from ((path, action) for _, action in parser.flags)
    for name, command in parser.commands.items():
        yield from _arguments(command, f"{path} {name}".strip())
