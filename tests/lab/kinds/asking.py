"""Commands on a lab host that print one fact about the responses of a server."""

_GET = "curl -sS --compressed -H 'Connection: keep-alive' -o /dev/null"


def header(url: str, name: str) -> str:
    """The value of a header in the second of two responses; "" without it."""
    return f"{_GET} {url}; {_GET} -D - {url} | tr -d '\\r' | sed -n 's/^{name}: //Ip'"


def has_header(url: str, name: str) -> str:
    return f"{_GET} -D - {url} | grep -ci '^{name}:'"


def connections(url: str, requests: int = 2) -> str:
    """The new connections that the last of some requests needs: 0 if the one before it is kept."""
    return f"{_GET} {url}{f' -o /dev/null {url}' * (requests - 1)} -w '%{{num_connects}}\\n' | tail -n 1"
