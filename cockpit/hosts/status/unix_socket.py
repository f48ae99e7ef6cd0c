"""Requests a page on a Unix socket of the host, with socat, nc, python3 or perl on the host."""

from __future__ import annotations

import shlex

from cockpit.hosts.shell import Shell
from cockpit.model.errors import HostError
from cockpit.model.text import sanitize

# "$1" is the socket, "$2" the request. Servers close the connection after their response. socat gets only plain paths,
# because other characters may start options or another address such as a command.
REQUEST_PROGRAM = """
case $1 in *[!A-Za-z0-9_./@-]*) plain= ;; *) plain=y ;; esac
if [ "$plain" ] && command -v socat >/dev/null; then printf '%s\\n' "$2" | socat -t 5 - "UNIX-CONNECT:$1"
elif nc -h 2>&1 | grep -q -e '-[A-Za-z0-9]*U'; then printf '%s\\n' "$2" | nc -U "$1"
elif command -v python3 >/dev/null; then python3 -c '
import socket, sys
try:
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    s.sendall(sys.argv[2].encode() + b"\\n")
    while data := s.recv(65536): sys.stdout.buffer.write(data)
except OSError as error:
    sys.exit(str(error))
' "$1" "$2"
elif command -v perl >/dev/null; then perl -MIO::Socket::UNIX -e '
$s = IO::Socket::UNIX->new($ARGV[0]) or die "$!\\n";
$s->autoflush(1); print $s "$ARGV[1]\\n"; print while <$s>;' "$1" "$2"
else echo 'no program to read a socket; install socat, nc, python3 or perl' >&2; exit 1
fi
"""


async def ask_socket(
    shell: Shell,
    path: str,
    request: str,
    timeout: float,  # noqa: ASYNC109
    program: str = "",
) -> bytes:
    """Return the response to a request of one line, or the output of `program`. Raises HostError with the reason."""
    arguments = f"set -- {shlex.quote(path)} {shlex.quote(request)}"
    done = await shell.run(f"{arguments}\n{program or REQUEST_PROGRAM}", timeout=timeout)
    if done.exit_status != 0 or not done.stdout:
        lines = done.stderr.decode("utf-8", "replace").split("\n")
        why = next((line.strip() for line in lines if line.strip()), "no response")
        hint = "; log in as root or a member of its group" if "ermission denied" in why else ""
        raise HostError(f"{path}: {sanitize(why, 200)}{hint}")
    return done.stdout
