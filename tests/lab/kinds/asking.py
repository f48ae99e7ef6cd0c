"""Commands on a lab host that print one fact about the responses or the system calls of a server."""

_GET = "curl -sS --compressed -H 'Connection: keep-alive' -o /dev/null"


def written(setting: str, files: str) -> str:
    """The number of lines with a setting: for settings that a running server does not print."""
    return f"cat {files} | grep -cE '^[[:space:]]*{setting}$'"


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


# A text that compresses, and its path.
TEXT = "/text.html"
MAKE_TEXT = f"cp /usr/share/common-licenses/GPL-3 /var/www/html{TEXT}"


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
