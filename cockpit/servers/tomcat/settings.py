"""Tomcat's settings in /etc/default, and of the Connectors and Executors in server.xml.

https://tomcat.apache.org/tomcat-10.1-doc/config/http.html
"""

import re
import shlex

from cockpit.servers.settings import Impact, KnownSetting, ValueForm, integer

_COUNT = integer(1)
_SIZE = re.compile(r"-X(?:m[nsx]|ss)(?:\d{1,15}[kKmMgGtT]?)")


def _are_options(value: str) -> bool:
    """Whether the JVM can take each word for an option, and those of its memory are sizes. catalina.sh has the shell
    read the value, which may have variables and quotes."""
    try:
        words = shlex.split(value)
    except ValueError:
        return False
    sizes = (word for word in words if word.startswith(("-Xmn", "-Xms", "-Xmx", "-Xss")) and "$" not in word)
    return all(word[:1] in ("-", "@", "$") for word in words) and all(map(_SIZE.fullmatch, sizes))


_MILLISECONDS = integer().or_word("-1")


def _restart(text: str, form: ValueForm) -> KnownSetting:
    return KnownSetting(text, form, Impact.RESTART)


KEYS = {
    "JAVA_OPTS": KnownSetting(
        "options of the JVM: -Xmx bounds the heap; a small heap collects often, a large one takes memory",
        ValueForm("options such as -Xmx512m -XX:+UseParallelGC", _are_options),
        Impact.RESTART,
    ),
}
SETTINGS = {
    "maxThreads": _restart("maximum threads that serve requests (200); too few queue, too many take memory", _COUNT),
    "minSpareThreads": _restart("threads that are kept running (10); matters if load arrives in bursts", integer()),
    "acceptCount": _restart("length of the accept queue (100); counts when maxConnections is reached", _COUNT),
    "maxConnections": _restart(
        "maximum connections at a time (8192), -1: no limit; more wait in the accept queue", integer().or_word("-1")
    ),
    "connectionTimeout": _restart(
        "milliseconds to wait for a request line after the connection; short frees it from silent clients",
        _MILLISECONDS,
    ),
    "keepAliveTimeout": _restart(
        "milliseconds that an idle connection is kept, -1: forever; short frees connections", _MILLISECONDS
    ),
    "maxKeepAliveRequests": _restart(
        "requests per connection (100), -1: no limit, 1: no keep-alive; low costs new connections",
        integer().or_word("-1"),
    ),
}
