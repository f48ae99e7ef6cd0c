"""Change the maximum connections of a frontend without a reload, by HAProxy's stats socket."""

from __future__ import annotations

import re

from cockpit.servers.kind import CandidateKnob

# Only the level admin can change values.
_ADMIN = re.compile(r"(?m)^[ \t]*stats[ \t]+socket[ \t]+(/[\w/.-]+)(?=[ \t])(?=[^\n#]*[ \t]level[ \t]+admin\b)")
_SECTION = re.compile(r"(?:frontend|listen)\s+([\w.:-]+)")
_PYTHON = (
    "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(sys.argv[2].encode() + "
    'b"\\n"); sys.stdout.write("".join(iter(lambda: s.recv(65536).decode(), "")))'
)
_PERL = '$s = IO::Socket::UNIX->new(shift) or die "$!\\n"; $s->autoflush(1); print $s shift, "\\n"; print while <$s>'
_ASK = """ask() {
    if command -v socat >/dev/null; then printf '%s\\n' "$1" | socat -t 5 - UNIX-CONNECT:SOCKET
    elif command -v python3 >/dev/null; then python3 -c 'PYTHON' SOCKET "$1"
    else perl -MIO::Socket::UNIX -e 'PERL' SOCKET "$1"
    fi
}
""".replace("PYTHON", _PYTHON).replace("PERL", _PERL)
_GET = """ask 'show stat' | awk -F, -v name=NAME '
    NR == 1 { for (n = 1; n <= NF; n++) if ($n == "slim") at = n }
    $1 == name && $2 == "FRONTEND" && at { print $at }'"""
_SET = """case $1 in '' | *[!0-9]*) echo 'the value must be a number of connections' >&2; exit 1 ;; esac
answer=$(ask "set maxconn frontend NAME $1") && [ -z "$answer" ] || { echo "$answer" >&2; exit 1; }"""


def live(candidate: CandidateKnob, text: str) -> CandidateKnob:
    """Add commands that set the candidate without a reload, if the configuration has a socket with the level admin."""
    socket, section = _ADMIN.search(text), _SECTION.fullmatch(candidate.section or "")
    if candidate.directive != "maxconn" or socket is None or section is None:
        return candidate
    ask = _ASK.replace("SOCKET", socket[1])
    get, put = (f"{ask}{program.replace('NAME', section[1])}" for program in (_GET, _SET))
    return candidate._replace(get=get, set=put, reload="", workers="", log="")
