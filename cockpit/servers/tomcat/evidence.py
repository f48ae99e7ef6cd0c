"""Active values of a running Tomcat. Its manager is not used, because it requires a password."""

from __future__ import annotations

from cockpit.servers.evidence import LISTEN_QUEUE, Evidence, at_least

# Threads of a Connector are named http-nio-8080-exec-1; the kernel keeps 15 characters.
_THREADS = """
case $section in 'Connector '*) ;; *) exit 0 ;; esac
count=0
for name in $(cat /proc/"$pid"/task/*/comm); do
    case $name in *-"${section#Connector }"-e*) count=$((count + 1)) ;; esac
done
echo "$count"
"""

SHOWN = {
    "acceptCount": LISTEN_QUEUE,
    "minSpareThreads": Evidence("the names of its threads", _THREADS, at_least),
}
