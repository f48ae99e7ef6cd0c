"""Commands on a lab host that print one fact about the responses or the system calls of a server."""

_GET = "curl -sS --compressed -H 'Connection: keep-alive' -o /dev/null"


def written(pattern: str, file: str) -> str:
    """The number of lines of a file that match: for settings that a running server does not print."""
    return f"grep -cE '{pattern}' {file}"


def header(url: str, name: str) -> str:
    """The value of a header in the second of two responses; "" without it."""
    return f"{_GET} {url}; {_GET} -D - {url} | tr -d '\\r' | sed -n 's/^{name}: //Ip'"


def has_header(url: str, name: str) -> str:
    return f"{_GET} -D - {url} | grep -ci '^{name}:'"


def held_open(port: int, sends: str = "") -> str:
    """Start a client that keeps three connections open until it is killed by END_HELD."""
    connect = f'socket.create_connection(("127.0.0.1", {port}))'
    code = f'import socket, time; held = [{connect} for _ in range(3)]; [one.sendall(b"{sends}") for one in held]'
    return f"setsid python3 -c '{code}; time.sleep(600)' </dev/null >/dev/null 2>&1 & echo $! >/run/held.pid"


END_HELD = "kill $(cat /run/held.pid); rm -f /run/held.pid"


def established(port: int) -> str:
    """The number of connections to a port, and the one that requests the page."""
    return f"$((1 + $(ss -Htn state established sport = :{port} | wc -l)))"


def connections(url: str, requests: int = 2) -> str:
    """The new connections that the last of some requests needs: 0 if the one before it is kept."""
    return f"{_GET} {url}{f' -o /dev/null {url}' * (requests - 1)} -w '%{{num_connects}}\\n' | tail -n 1"


# A file of 2 MiB that web1's servers serve, and its URL's path.
LARGE = "/large.bin"
MAKE_LARGE = f"head -c 2097152 /dev/urandom >/var/www/html{LARGE}"
# A text that compresses, and its path.
TEXT = "/text.html"
MAKE_TEXT = f"cp /usr/share/common-licenses/GPL-3 /var/www/html{TEXT}"


def copied(pids: str, url: str) -> str:
    """How a server sends the large file: by `sendfile`, from a mapping (`mmap`), or with a `read` per buffer. `pids` is
    a command that prints the PIDs of its processes."""
    count = f"cat $(printf '/proc/%s/io ' $({pids})) 2>/dev/null"
    program = (
        "/^rchar/ { bytes += (NR > half ? 1 : -1) * $2 } /^syscr/ { calls += (NR > half ? 1 : -1) * $2 }"
        ' END { print (bytes < 2097152 ? "mmap" : calls < 50 ? "sendfile" : "read") }'
    )
    return f"""
        before=$({count}); curl -sS -o /dev/null {url}{LARGE}; after=$({count})
        printf '%s\\n%s\\n' "$before" "$after" | awk -v half=$(echo "$before" | wc -l) '{program}'
    """


def larger(percent: int, url: str) -> str:
    """Whether the compressed text is `larger` than so many percent of that by gzip's highest level, or `smaller`."""
    return f"""
        best=$(gzip -9 </var/www/html{TEXT} | wc -c)
        size=$(curl -sS -H 'Accept-Encoding: gzip' -o /dev/null -w '%{{size_download}}' {url}{TEXT})
        [ $((100 * size / best)) -gt {percent} ] && echo larger || echo smaller
    """


def after_silence(port: int, seconds: float, sends: str = "") -> str:
    """Whether a connection on which nothing follows is `open` or `closed` after some seconds."""
    return f"""python3 -c '
import socket
client = socket.create_connection(("127.0.0.1", {port}))
client.settimeout({seconds})
client.sendall(b"{sends}")
try:
    while client.recv(65536):
        pass
    print("closed")
except TimeoutError:
    print("open")
except ConnectionError:
    print("closed")
'"""


def get(path: str) -> str:
    """The bytes of a request, for after_silence."""
    return f"GET {path} HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n"


def accepted(port: int, clients: int) -> str:
    """Whether `all` of some idle connections are kept, or only `some`."""
    return f"""python3 -c '
import select, socket
held = [socket.create_connection(("127.0.0.1", {port})) for _ in range({clients})]
print("some" if select.select(held, [], [], 2)[0] else "all")
'"""


def _at_server(port: int, asks: str) -> str:
    """Ask the server's socket of a connection that is kept after two responses, by pidfd_getfd(2)."""
    return f"""python3 -c '
import ctypes, glob, os, socket, struct
client = socket.create_connection(("127.0.0.1", {port}))
for _ in range(2):
    client.sendall(b"{get("/hello.html")}")
    while b"</html>" not in client.recv(65536):
        pass
mine = ":%04X" % client.getsockname()[1]
rows = [line.split() for line in open("/proc/net/tcp")]
inode = next(row[9] for row in rows if row[2].endswith(mine))
links = ((one, os.readlink(one)) for one in glob.glob("/proc/[0-9]*/fd/*") if os.path.lexists(one))
_, _, pid, _, number = next(one for one, to in links if to == f"socket:[{{inode}}]").split("/")
copy = ctypes.CDLL(None).syscall(438, os.pidfd_open(int(pid)), int(number), 0)
server = socket.socket(fileno=copy)
print({asks})
'"""


def parts(port: int) -> str:
    """The number of segments with data in which two short responses were sent: tcpi_data_segs_out of tcp(7)."""
    return _at_server(port, 'struct.unpack_from("I", server.getsockopt(6, 11, 232), 156)[0]')
