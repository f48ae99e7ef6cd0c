"""gunicorn with its default configuration file, and a second master with a file by -c."""

from tests.lab.kinds import KindCase, KindChange
from tests.lab.kinds.asking import after_silence, get, written

PORT = 8086
APP = """\
import os
import threading
import time

LOADED = os.getpid()


def application(environ, start_response):
    time.sleep(float(environ["QUERY_STRING"] or 0))
    start_response("200 OK", [("Content-Type", "text/plain")])
    facts = os.getpid(), environ["wsgi.multithread"], LOADED == os.getpid(), threading.get_ident()
    return [" ".join(map(str, facts)).encode()]
"""
_CONFIG = """\
# The file of the lab.
workers = 2  # one per CPU
worker_class = "sync"
"""
_CHILDREN = "pgrep -c -P $(cat /run/{}.pid)"
_ASK = f"curl -sS --fail http://localhost:{PORT}/"

# Whether more threads than the workers of both settings serve requests at the same time.
_THREADS = f"""
    {{ for n in 1 2 3 4 5 6 7 8 9; do {{ {_ASK}?1; echo; }} & done; wait; }} | awk '{{ seen[$1 $4] }}
        END {{ n = length(seen); print (n > 5 ? "many" : "few") }}'
"""
_PROCESSES = f"for n in 1 2 3 4 5 6; do {_ASK}; echo; done | cut -d ' ' -f 1 | sort -u | wc -l"
_START = f"""
    export PYTHONDONTWRITEBYTECODE=1; cd /srv/gunicorn
    gunicorn -D -p /run/gunicorn.pid -b 0.0.0.0:{PORT} app:application
"""
_ENDED = "while [ -e /proc/$pid ]; do sleep 0.02; done"
_UP = f"until {_ASK} >/dev/null 2>&1; do sleep 0.05; done"
_QUEUE = f"""
    pid=$(cat /run/gunicorn.pid); kill $pid; {_ENDED}; {_START} {_UP}
    ss -ltnH sport = :{PORT} | awk '{{ print $3 }}'
"""
# Words of a response that takes five seconds, from a server that is stopped meanwhile.
_CUT = f"""
    {{ {_ASK}?5 2>/dev/null | wc -w >/run/words; }} &
    until [ "$(ss -Htn state established dport = :{PORT})" ]; do sleep 0.02; done
    pid=$(cat /run/gunicorn.pid); kill $pid; wait; {_ENDED}; {_START} {_UP}
    cat /run/words
"""
# How many of 20 silent connections the workers have accepted.
_ACCEPTED = f"""python3 -c '
import socket, subprocess, time
held = [socket.create_connection(("127.0.0.1", {PORT})) for _ in range(20)]
seen = [-2, -1]
while seen[-1] != seen[-2]:
    time.sleep(1)
    rows = subprocess.run(["ss", "-Htnp", "state", "established", "sport = :{PORT}"], capture_output=True, text=True)
    seen.append(rows.stdout.count("users:"))
print(seen[-1])
'"""


CASE = KindCase(
    name="gunicorn",
    title="gunicorn",
    port=PORT,
    start=f"""
        export PYTHONDONTWRITEBYTECODE=1
        install -d /srv/gunicorn /srv/gunicorn2
        printf %s '{APP}' | tee /srv/gunicorn/app.py >/srv/gunicorn2/app.py
        printf %s '{_CONFIG}' | tee /srv/gunicorn/gunicorn.conf.py >/srv/gunicorn2/second.py
        {_START}
        cd /srv/gunicorn2
        gunicorn -D -p /run/gunicorn2.pid -b 0.0.0.0:{PORT + 1} -c second.py app:application
        for i in $(seq 200); do {_ASK} && curl -sS --fail http://localhost:{PORT + 1}/ && break; sleep 0.05; done
    """,
    stop="""
        kill $(cat /run/gunicorn.pid /run/gunicorn2.pid)
        while pgrep gunicorn; do sleep 0.02; done
    """,
    second="pgrep -P $(cat /run/gunicorn2.pid) | sort",
    places="/srv/gunicorn /srv/gunicorn2",
    changes=(
        KindChange("workers", "3", _CHILDREN.format("gunicorn"), "3"),
        KindChange("worker_class", "gthread", f"{_ASK} | cut -d ' ' -f 2", "True"),
        KindChange("threads", "3", _THREADS, "many"),
        KindChange("keepalive", "30", after_silence(PORT, 4, get("/")), "open"),
        KindChange("preload_app", "True", f"{_ASK} | cut -d ' ' -f 3", "False"),
        # Nothing in a running master shows this.
        KindChange(
            "max_requests_jitter",
            "9",
            written("^max_requests_jitter = 9$", "/srv/gunicorn/gunicorn.conf.py"),
            "1",
        ),
    ),
    later=(
        (
            KindChange("max_requests", "1", _PROCESSES, "6"),
            # A worker that sleeps for longer is killed.
            KindChange("timeout", "2", f"{_ASK}?5 | wc -w", "0"),
        ),
        (
            KindChange("workers", "1", _CHILDREN.format("gunicorn"), "1"),
            KindChange("worker_class", "gthread", f"{_ASK} | cut -d ' ' -f 2", "True"),
            KindChange("worker_connections", "7", _ACCEPTED, "7"),
        ),
        # The queue is active after a restart only.
        (KindChange("graceful_timeout", "1", _CUT, "0"), KindChange("backlog", "99", _QUEUE, "99")),
    ),
    shown=("workers",),
    malformed=("workers", "many", "workers takes a whole number of at least 1, not 'many'"),
    failing=("worker_class", "nosuch.Class", "nosuch"),
    apart=(KindChange(f"workers-{PORT + 1}", "3", _CHILDREN.format("gunicorn2"), "3"),),
)
