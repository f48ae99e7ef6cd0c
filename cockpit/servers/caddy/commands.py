"""Shell commands for one running Caddy."""

from __future__ import annotations

import posixpath
import shlex

from cockpit.servers.inventory import Process
from cockpit.servers.startup import command, command_line

# Arguments: the pattern of a command line, then a command. Runs the command in the environment of the process with that
# command line; no other process sees the environment. Only processes of root and of the login are considered: the
# environment of another user must not reach a command.
_ENVIRONMENT = (
    'pid=$(pgrep -o -x -f -u "0,$(id -u)" -- "$1") && shift && all=$(tr "\\n\\000" "\\001\\n" <"/proc/$pid/environ" |'
    r""" sed -e "y/$(printf "\001")/\n/" -e "s/'/'\\\\''/g" """
    r"""-e "s/^\([A-Za-z_][A-Za-z0-9_]*\)=\(.*\)/export \1='\2'/" -e t -e d) && eval "$all" && exec "$@" """
).strip()
# The admin endpoint returns the running configuration as JSON, with keys in another order: the sorted parts are
# compared. On a Unix socket the endpoint requires an empty Host header. A file server lists the Caddyfile among its
# hidden files, by the name on the command line; these lines are excluded.
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
    """Return a command that runs in the environment of the server, so that {$NAME} has the same value: `caddy reload`
    expands variables in its own environment."""
    return command("env", "-i", "sh", "-c", _ENVIRONMENT, "sh", command_line(process), *words)


def comparison(adapt: str, file: str) -> str:
    """Return a program that prints `no` if the running configuration differs from the file, which the command `adapt`
    prints as JSON. It prints nothing if they agree, or if one of them cannot be read."""
    return _COMPARE.format(adapt=adapt, name=shlex.quote(f'/{posixpath.basename(file)}"'))
