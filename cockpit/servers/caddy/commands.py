"""Shell commands that act on one running Caddy."""

from __future__ import annotations

import posixpath
import shlex

from cockpit.servers.inventory import Process
from cockpit.servers.startup import command, command_line

# The pattern of a command line in "$1", then a command, which gets the environment of that process; no other process
# sees it. Only those of root and of the login are asked: the environment of another user must not reach a command.
_ENVIRONMENT = (
    'pid=$(pgrep -o -x -f -u "0,$(id -u)" -- "$1") && shift && all=$(tr "\\n\\000" "\\001\\n" <"/proc/$pid/environ" |'
    r""" sed -e "y/$(printf "\001")/\n/" -e "s/'/'\\\\''/g" """
    r"""-e "s/^\([A-Za-z_][A-Za-z0-9_]*\)=\(.*\)/export \1='\2'/" -e t -e d) && eval "$all" && exec "$@" """
).strip()
# The admin endpoint has the running configuration as JSON, its keys in another order. On a Unix socket it answers if
# the host is empty. A file server hides the file by the name that it was given.
_COMPARE = r"""
parts() {{ tr ',{{}}[]' '\n\n\n\n\n' | grep -vF {name} | sort; }}
file=$({adapt} 2>/dev/null) && [ "$file" ] || exit 0
admin=$(printf '%s' "$file" | sed -n 's/.*"admin":{{[^}}]*"listen":"\([^"]*\)".*/\1/p')
case $admin in
    unix/*) admin=${{admin#unix/}}; set -- --unix-socket "${{admin%%|*}}" -H 'Host;' http://localhost/config/ ;;
    '') set -- http://localhost:2019/config/ ;;
    :*) set -- "http://localhost$admin/config/" ;;
    *) set -- "http://$admin/config/" ;;
esac
running=$(curl -gsS --fail --max-time 5 "$@") && [ "$running" ] || exit 0
[ "$(printf '%s' "$file" | parts)" = "$(printf '%s' "$running" | parts)" ] || echo no
"""


def in_its_environment(process: Process, *words: str) -> str:
    """A command that replaces {$NAME} as the running server did: `caddy reload` reads the file, not the server."""
    return command("env", "-i", "sh", "-c", _ENVIRONMENT, "sh", command_line(process), *words)


def comparison(adapt: str, file: str) -> str:
    """A program that prints `no` if the server runs another configuration than that of the file, which `adapt` prints
    as JSON; nothing if it runs that one, or if one of them cannot be read."""
    return _COMPARE.format(adapt=adapt, name=shlex.quote(f'/{posixpath.basename(file)}"'))
