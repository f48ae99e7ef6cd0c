"""Commands on a lab host that print one fact about a server: of its responses, its sockets or its processes."""

_GET = "curl -sS --compressed -H 'Connection: keep-alive' -o /dev/null"


def written(setting: str, files: str) -> str:
    """The number of lines with a setting: for settings that a running server does not print."""
    return f"cat {files} | grep -cE '^[[:space:]]*{setting}$'"


def header(url: str, name: str) -> str:
    """The value of a header in the second of two responses; "" without it."""
    return f"{_GET} {url}; {_GET} -D - {url} | tr -d '\\r' | sed -n 's/^{name}: //Ip'"


def has_header(url: str, name: str) -> str:
    return f"{_GET} -D - {url} | grep -ci '^{name}:'"


# A file with a key and its certificate.
PEM = "/run/kinds.pem"
MAKE_PEM = f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=a -keyout {PEM} -out {PEM}"


def http_version(url: str, flag: str = "--http2") -> str:
    return f"curl -sSk {flag} -o /dev/null -w '%{{http_version}}\\n' {url}"


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


# A text that compresses, and a file of 2 MiB.
TEXT, LARGE = "/text.html", "/large.bin"
MAKE_FILES = f"""
    cp /usr/share/common-licenses/GPL-3 /var/www/html{TEXT}
    head -c 2097152 /dev/urandom >/var/www/html{LARGE}
"""


def compressed(url: str) -> str:
    """The size of the compressed text in kB: 12 at gzip's default level, 14 at its lowest."""
    return f"curl -sS -H 'Accept-Encoding: gzip' -o /dev/null -w '%{{size_download}}' {url}{TEXT} | cut -c 1,2"


def copies(counter: str, least: int, pids: str, url: str) -> str:
    """1 if a counter of /proc/PID/io grows by at least `least` with a request of the large file, otherwise 0.

    rchar grows by its size unless the file is mapped, syscr by one per buffer without sendfile."""
    files = f"cat $(printf '/proc/%s/io ' $({pids})) 2>/dev/null"
    count = f"{files} | awk '/^{counter}/ {{ sum += $2 }} END {{ print sum }}'"
    return f"old=$({count}); curl -sS -o /dev/null {url}{LARGE}; echo $(($({count}) - old >= {least}))"


def open_files(pid: str) -> str:
    """The limit of open files of a process."""
    return f"awk '/^Max open files/ {{ print $4 }}' /proc/$({pid})/limits"


def accept_queue(port: int) -> str:
    """The length of the accept queue."""
    return f"ss -ltnH sport = :{port} | awk '{{ print $3 }}' | sort -u"


def while_open(port: int, clients: int, command: str, sends: str = "") -> str:
    """The output of a command while some connections are open, when it stays the same."""
    # Apache starts processes once per second.
    return f"""python3 -c '
import socket, subprocess, time
held = [socket.create_connection(("127.0.0.1", {port})) for _ in range({clients})]
for one in held:
    one.sendall(b"{sends}")
seen = []
while len(seen) < 3 or len(set(seen[-3:])) > 1:
    time.sleep(1.2)
    seen.append(subprocess.getoutput("{command}"))
print(seen[-1])
'"""


def restarted(pid_file: str, start: str, ready: str) -> str:
    """Restart a server, whose children may keep its port for a moment."""
    return f"""{{
        pid=$(cat {pid_file}); kill $pid; while [ -e /proc/$pid ]; do sleep 0.02; done
        until {start}; do sleep 0.1; done; until {ready}; do sleep 0.05; done
    }} >/dev/null 2>&1"""


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
