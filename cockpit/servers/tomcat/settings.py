"""Tomcat's settings: in /etc/default, and of the Connectors and Executors in server.xml.

https://tomcat.apache.org/tomcat-10.1-doc/config/http.html
"""

import re
import shlex

from cockpit.servers.evidence import LISTEN_QUEUE, Evidence, at_least
from cockpit.servers.settings import Impact, KnownSetting, ValueForm, integer

_COUNT = integer(1)
_SIZE = re.compile(r"-X(?:m[nsx]|ss)(?:\d{1,15}[kKmMgGtT]?)")


def _are_options(value: str) -> bool:
    """Return whether each word can be a JVM option, with sizes in the memory options. The value is expanded by the
    shell (catalina.sh), so it can contain variables and quotes."""
    try:
        words = shlex.split(value)
    except ValueError:
        return False
    sizes = (word for word in words if word.startswith(("-Xmn", "-Xms", "-Xmx", "-Xss")) and "$" not in word)
    return all(word[:1] in ("-", "@", "$") for word in words) and all(map(_SIZE.fullmatch, sizes))


_MILLISECONDS = integer().or_word("-1")


def _restart(text: str, form: ValueForm, shown: Evidence | None = None) -> KnownSetting:
    return KnownSetting(text, form, Impact.RESTART, shown=shown)


KEYS = {
    "JAVA_OPTS": KnownSetting(
        "options of the JVM: -Xmx limits the heap; a small heap needs frequent collections, a large one memory",
        ValueForm("options such as -Xmx512m -XX:+UseParallelGC", _are_options),
        Impact.RESTART,
    ),
}
# Threads of a Connector are named http-nio-8080-exec-1; the kernel keeps 15 characters.
_THREADS = """
case $section in 'Connector '*) ;; *) exit 0 ;; esac
count=0
for name in $(cat /proc/"$pid"/task/*/comm); do
    case $name in *-"${section#Connector }"-e*) count=$((count + 1)) ;; esac
done
echo "$count"
"""

SETTINGS = {
    "maxThreads": _restart("maximum request threads (default 200); too few: requests wait, too many: memory", _COUNT),
    "minSpareThreads": _restart(
        "minimum threads (default 10); matters if load arrives in bursts",
        integer(),
        shown=Evidence("the names of its threads", _THREADS, at_least),
    ),
    "acceptCount": _restart(
        "length of the accept queue (default 100); matters if maxConnections is reached", _COUNT, shown=LISTEN_QUEUE
    ),
    "maxConnections": _restart(
        "maximum connections (default 8192), -1: no limit; more wait in the accept queue", integer().or_word("-1")
    ),
    "connectionTimeout": _restart(
        "maximum time to receive a request line (ms); short disconnects silent clients", _MILLISECONDS
    ),
    "keepAliveTimeout": _restart(
        "maximum idle time of a connection (ms), -1: no limit; short frees connections", _MILLISECONDS
    ),
    "maxKeepAliveRequests": _restart(
        "requests per connection (default 100), -1: no limit, 1: no keep-alive; low means more handshakes",
        integer().or_word("-1"),
    ),
}
