"""gunicorn with its default configuration file, and a second master with a file by -c."""

from tests.lab.kinds import Change, KindCase
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
_FILE = "/srv/gunicorn/gunicorn.conf.py"
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
        Change("workers", "3", _CHILDREN.format("gunicorn"), "3"),
        Change("worker_class", "gthread", f"{_ASK} | cut -d ' ' -f 2", "True"),
        Change("threads", "3", _THREADS, "many"),
        Change("keepalive", "30", after_silence(PORT, 4, get("/")), "open"),
        Change("preload_app", "True", f"{_ASK} | cut -d ' ' -f 3", "False"),
        # Nothing in a running master shows the settings that are only looked for in the file.
        Change("max_requests_jitter", "9", written("max_requests_jitter = 9", _FILE), "1"),
    ),
    later=(
        (
            Change("max_requests", "1", _PROCESSES, "6"),
            # A worker that sleeps for longer is killed.
            Change("timeout", "2", f"{_ASK}?5 | wc -w", "0"),
        ),
        (
            Change("workers", "1", _CHILDREN.format("gunicorn"), "1"),
            Change("worker_class", "gthread", f"{_ASK} | cut -d ' ' -f 2", "True"),
            Change("worker_connections", "7", written("worker_connections = 7", _FILE), "1"),
        ),
        (
            Change("graceful_timeout", "1", written("graceful_timeout = 1", _FILE), "1"),
            Change("backlog", "99", written("backlog = 99", _FILE), "1"),
        ),
    ),
    shown=("workers",),
    malformed=("workers", "many", "workers takes a whole number of at least 1, not 'many'"),
    failing=("worker_class", "nosuch.Class", "nosuch"),
    apart=(Change(f"workers-{PORT + 1}", "3", _CHILDREN.format("gunicorn2"), "3"),),
)
